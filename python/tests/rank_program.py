"""A training script for ranks_test.py: rank_program.py SCENARIO FOLDER [DEVICE,...] trains as a rank of a group and writes the parameters to FOLDER.

SCENARIO is the name of an entry of SCENARIOS, or of a function of this file for what is not training. Each rank takes
the device of its number, or the last one.
"""

import contextlib
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import hooke.torch as hooke  # noqa: E402
from hooke import _torch_staging  # noqa: E402
from hooke._native import _WORK  # noqa: E402
from hooke._torch_sampler import order  # noqa: E402

def parameter_groups(parameters):
    return [{"params": parameters[:2], "weight_decay": 0.0}, {"params": parameters[2:], "lr": 0.002}]


def two_optimizers(parameters):
    return [torch.optim.SGD(parameters[:2], lr=0.02, momentum=0.9), torch.optim.Adam(parameters[2:], lr=0.003)]


SAMPLES, BATCH, EPOCHS = 400, 4, 2  # 50 steps of an epoch for each of two ranks; 100 in all.
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(parameter_groups(list(p)), lr=0.003),
    "two": lambda p: two_optimizers(list(p)),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.003, fused=True),
}
# Scenario -> (optimizer, options of train).
SCENARIOS = {
    "sgd": ("sgd", {}),
    "momentum": ("momentum", {}),
    "adamw": ("adamw", {}),
    "clipped": ("momentum", {"clip": 0.05}),
    "scheduled": ("momentum", {"schedule": True}),
    "two_optimizers": ("two", {"clip": 0.05}),
    # 50 steps of two backward passes.
    "accumulated": ("momentum", {"accumulate": 2, "told": True}),
    "accumulated_untold": ("adamw", {"accumulate": 2, "told": False, "clip": 0.05}),
    "no_sync": ("momentum", {"accumulate": 2, "told": True, "no_sync": True}),
    "bfloat16": ("sgd", {"types": "bfloat16", "tolerance": 0.05}),
    # The last layer is float32.
    "mixed": ("momentum", {"types": "mixed", "tolerance": 0.05}),
    # With a GradScaler, whose work a fused optimizer does in its step.
    "scaled": ("momentum", {"scaled": True, "clip": 0.05}),
    "scaled_fused": ("fused", {"scaled": True}),
    "autocast": ("adamw", {"autocast": True, "tolerance": 0.05}),
    # As on a device, by copies between two places in host memory.
    "staged": ("momentum", {"staged": True, "clip": 0.05}),
    "staged_two_optimizers": ("two", {"staged": True, "accumulate": 2, "told": True, "no_sync": True}),
    "staged_mixed": ("momentum", {"staged": True, "types": "mixed", "tolerance": 0.05}),
    "staged_scaled_fused": ("fused", {"staged": True, "scaled": True, "accumulate": 2, "told": False}),
    "staged_autocast": ("adamw", {"staged": True, "autocast": True, "tolerance": 0.05}),
    "staged_compiled": ("adamw", {"staged": True, "compile": "after"}),
    # With torch.compile, which the plain training does without. The default backend would run g++ for a minute on two
    # cores.
    "compiled_before_wrap": ("momentum", {"compile": "before"}),
    "compiled_after_wrap": ("adamw", {"compile": "after"}),
}


class Model(nn.Module):
    """Has tied weights, a frozen layer, a parameter that is never used, and an expert that only some samples use, so that often no rank does."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6, bias=False)
        self.second.weight = self.first.weight
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.never = nn.Parameter(torch.ones(5))
        self.expert = nn.Linear(6, 6)
        self.last = nn.Linear(6, 2)

    def forward(self, x):
        x = x.to(self.first.weight.dtype)
        y = torch.tanh(self.frozen(self.second(torch.tanh(self.first(x)))))
        chosen = x[:, 0] > 1.2
        if chosen.any():
            y = y + torch.where(chosen[:, None], self.expert(x), torch.zeros((), dtype=x.dtype))
        return self.last(y.to(self.last.weight.dtype)).float()


def data():
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(SAMPLES, 6, generator=generator)
    return TensorDataset(x, torch.stack([x[:, 0] * x[:, 1], x[:, 2].sin()], 1))


def make(name, seed, device="cpu"):
    torch.manual_seed(seed)
    model = Model().to(device)
    kind, options = SCENARIOS[name]
    if "types" in options:
        model.bfloat16()
    if options.get("types") == "mixed":
        model.last.float()
    optimizer = OPTIMIZERS[kind](p for p in model.parameters() if p.requires_grad)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100) if options.get("schedule") else None
    return model, optimizer, scheduler, options


def scaler_for(device):
    """None where torch has none for the device: on the CPU before torch 2.3."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device, init_scale=1024.0)
    return torch.cuda.amp.GradScaler(init_scale=1024.0) if device == "cuda" else None


def train(model, optimizer, scheduler, batches, clip=None, accumulate=1, job=None, no_sync=False, scaled=False, autocast=False, **_):
    device = next(model.parameters()).device
    scaler = scaler_for(device.type) if scaled else None
    for number, (x, y) in enumerate(batches, 1):
        x, y = x.to(device), y.to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            loss = nn.functional.mse_loss(model(x), y) / accumulate
        loss = scaler.scale(loss) if scaler else loss
        if no_sync and job and number % accumulate:
            with job.no_sync():
                loss.backward()
            continue
        loss.backward()
        if number % accumulate:
            continue
        optimizers = optimizer if isinstance(optimizer, list) else [optimizer]
        if clip:
            for each in optimizers if scaler else []:
                scaler.unscale_(each)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        for each in optimizers:
            scaler.step(each) if scaler else each.step()
        if scaler:
            scaler.update()
        if scheduler:
            scheduler.step()
        for each in optimizers:
            each.zero_grad()


def plain(name, ranks, seed):
    """Trains in one process without Hooke, with the batch of all ranks. Returns the state."""
    model, optimizer, scheduler, options = make(name, 1)
    everything = data()
    for epoch in range(EPOCHS):
        indices = order(SAMPLES, seed, epoch, True).split(BATCH * ranks)
        train(model, optimizer, scheduler, [everything[i] for i in indices], **options)
    return model.state_dict()


def stage():
    """Makes every tensor count as a device's, in pieces of few bytes."""
    _torch_staging.is_staged = lambda tensor: True
    _torch_staging.PIECE_BYTES = 100


def trained(name, folder, devices="cpu"):
    job = hooke.init()
    # Ranks that start from other values get rank 0's.
    model, optimizer, scheduler, options = make(name, 1 + job.rank, devices.split(",")[: job.rank + 1][-1])
    if options.get("staged"):
        stage()
    told = options.get("accumulate", 1) if options.get("told") and not options.get("no_sync") else 1
    plain_model = model
    if options.get("compile") == "before":
        model = torch.compile(model, backend="aot_eager")
    model, optimizer = job.wrap(model, optimizer, accumulate=told)
    if options.get("compile") == "after":
        model = torch.compile(model, backend="aot_eager")
    train_set = data()
    sampler = job.sampler(train_set, batch_size=BATCH)
    for _ in job.epochs(EPOCHS):
        train(model, optimizer, scheduler, DataLoader(train_set, batch_size=BATCH, sampler=sampler, num_workers=1), job=job, **options)
    torch.save((job.step, job.seed, {name: value.cpu().clone() for name, value in plain_model.state_dict().items()}), f"{folder}/{job.rank}.pt")


def small(job):
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    return job.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))


def step(model, optimizer):
    model(torch.randn(4, 3)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def collectives(_):
    job = hooke.init()
    assert job.all_reduce(torch.tensor([[1.0, job.rank], [2, 3]]).t(), "max").tolist() == [[1, 2], [job.ranks - 1, 3]]
    for kind in (torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64):
        assert job.all_reduce(torch.full((3,), job.rank + 1, dtype=kind)).tolist() == [3] * 3, kind
    assert job.broadcast(job.rank + 7, root=1) == 8
    assert job.all_gather(torch.tensor([job.rank, 5])).tolist() == [[rank, 5] for rank in range(job.ranks)]
    assert job.all_gather(float(job.rank)) == [0.0, 1.0]
    job.barrier()
    model, optimizer = small(job)
    step(model, optimizer)
    # The buffers are those of all ranks, and the loss is the mean.
    assert job.all_gather(model[1].running_mean)[0].equal(model[1].running_mean)
    job.report(loss=job.rank)
    step(model, optimizer)
    assert job.loss == 0.5 and job.step == 2, (job.loss, job.step)
    before = model[0].weight.clone()
    assert job.evaluate(lambda m: {"accuracy": job.all_reduce(0.25), "samples": 4})["accuracy"] == 0.5
    assert before.equal(model[0].weight)
    try:
        job.evaluate(lambda m: 1 / 0)
    except ZeroDivisionError:
        print(f"caught {job.rank}")


def buffers(_):
    """Buffers of types that the collectives do not know come from rank 0, too."""
    job = hooke.init()
    model = nn.Linear(3, 3)
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int64):
        for count in range(1, 6):
            model.register_buffer(f"{dtype}{count}".replace("torch.", ""), (torch.arange(count) % 2 == job.rank).to(dtype))
    job.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for name, buffer in model.named_buffers():
        assert buffer.tolist() == [1, 0, 1, 0, 1][: buffer.numel()], (job.rank, name, buffer)
    print(f"shared {job.rank}")


def staged_collectives(_):
    stage()
    collectives(_)


def staged_scaler_skip(_):
    stage()
    scaler_skip(_)


def half(_):
    """Parameters of float16, computed with in float32, which Debian's torch needs. The mean of large gradients is in range, though their sum is not."""
    job = hooke.init()
    model = nn.ParameterDict({"w": nn.Parameter(torch.ones(5).half()), "b": nn.Parameter(torch.ones(1))})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    job.wrap(model, optimizer)
    job.begin()
    (model["w"].float() * 60000).sum().backward()
    assert model["w"].grad.dtype == torch.float16 and (model["w"].grad.float() - 60000).abs().max() < 32, model["w"].grad
    optimizer.zero_grad()
    for _ in range(3):
        (model["w"].float() * (1 + 2 * job.rank) + model["b"]).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert model["w"].tolist() == [0.25] * 5 and model["b"].item() == 1 - 3 * 5 / 8, (model["w"], model["b"])
    job.finish()


def half_arrays(_):
    import numpy
    import hooke.numpy

    job = hooke.numpy.init()
    parameters = job.register({"w": numpy.ones(3, numpy.float16), "x": numpy.ones(2, numpy.float32)}, {"mean": numpy.zeros(1, numpy.float16)})
    for _ in range(4):
        job.gradients["w"][...] = 60000 if job.rank else 40000
        job.gradients["x"][...] = job.rank
        job.buffers["mean"][...] = job.rank
        job.combine(1.0)
        assert abs(float(job.gradients["w"][0]) - 50000) <= 32 and job.gradients["x"][1] == 0.5 and job.buffers["mean"][0] == 0.5
        parameters["w"] += numpy.float16(0.5)
        job.end_step()
        assert not job.gradients["w"].any()
    assert parameters["w"].dtype == numpy.float16 and parameters["w"].tolist() == [3.0] * 3
    job.finish()


def other_types(_):
    job = hooke.init()
    model = nn.Linear(3, 3)
    job.wrap(model.bfloat16() if job.rank else model, torch.optim.SGD(model.parameters(), lr=0.1))


def scaler_skip(_):
    """Rank 1's gradients overflow, so that no rank steps."""
    job = hooke.init()
    model, optimizer = small(job)
    job.begin()
    before = model[0].weight.clone()
    loss = model(torch.randn(4, 3)).sum() * (float("inf") if job.rank else 1.0)
    if hasattr(torch.amp, "GradScaler"):  # On the CPU since torch 2.3.
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 2
    else:  # What a GradScaler does: it leaves the step out if it finds infinity, which the mean has on both ranks.
        loss.backward()
        finite = all(p.grad.isfinite().all() for p in model.parameters())
        if finite:
            optimizer.step()
        assert not finite
    optimizer.zero_grad()
    assert before.equal(model[0].weight) and job.step == 0
    step(model, optimizer)
    assert job.step == 1


def stops(_):
    """Rank 1 has enough of training in the midst of epoch 1, and rank 0 stops with it."""
    job = hooke.init()
    model, optimizer = small(job)
    sampler = job.sampler(80, batch_size=4)
    steps, epochs = [], []
    for epoch in job.epochs(5):
        epochs.append(epoch)
        for _ in DataLoader(range(80), batch_size=4, sampler=sampler):
            if job.all_reduce(int(job.rank == 1 and epoch == 1 and job.step == 13), "max"):
                job.stop()
                break
            step(model, optimizer)
            steps.append(job.step)
    assert (epochs, steps[-1]) == ([0, 1], 13), (epochs, steps)
    print(f"stopped {job.rank}")


def takes(folder):
    """Trains until the step that a third argument names, or to the end. Writes which samples it takes, and what it knows of the job."""
    job = hooke.init()
    model, optimizer = small(job)
    data = TensorDataset(torch.arange(103))
    sampler = job.sampler(data, batch_size=3)
    taken = []
    for epoch in job.epochs(3):
        for (x,) in DataLoader(data, batch_size=3, sampler=sampler):
            taken.append((epoch, x.tolist()))
            step(model, optimizer)
            if str(job.step) == sys.argv[3]:
                break
        if str(job.step) == sys.argv[3]:
            break
    torch.save((job.first_step, [tuple(map(tuple, generation.shares)) for generation in job.generations], taken), f"{folder}/{job.rank}.pt")


def stops_after_an_epoch(_):
    """One rank's call is enough."""
    job = hooke.init()
    model, optimizer = small(job)
    epochs = []
    for epoch in job.epochs(5):
        epochs.append(epoch)
        step(model, optimizer)
        if job.rank == 1 and epoch == 2:
            job.stop()
    assert epochs == [0, 1, 2], epochs
    print(f"stopped {job.rank}")


def skips(_):
    """Rank 1 leaves a collective out and goes on to the next step."""
    job = hooke.init()
    model, optimizer = small(job)
    step(model, optimizer)
    with says(job, r"rank 0 in call \d+: all-reduce \(sum\) of 1 float64.*, rank 1 in call \d+: all-reduce \(mean\) .*in the same order"):
        if job.rank == 0:
            job.all_reduce(1.0)
        step(model, optimizer)


def ends_early(_):
    """Rank 1's data are at an end before rank 0's."""
    job = hooke.init()
    model, optimizer = small(job)
    for _ in range(3 - job.rank):
        step(model, optimizer)


@contextlib.contextmanager
def says(job, pattern):
    """Prints "said" and the rank if an error matches, then ends as a program does that knows nothing of it."""
    try:
        yield
    except hooke.Error as error:
        if re.search(pattern, error.message):
            print(f"said {job.rank}", flush=True)
        raise


def moves(_):
    """Rank 1 moves its model after wrap, and rank 0 does not."""
    job = hooke.init()
    model, optimizer = small(job)
    step(model, optimizer)
    if job.rank == 1:
        model.double().float()
    with says(job, "was moved after wrap" if job.rank else "combining the gradients: .*rank 1"):
        step(model, optimizer)


def other_models(_):
    job = hooke.init()
    model = nn.Linear(3, 3 + job.rank)
    with says(job, r"float32 parameter weight \[3 x 3\] on rank 0 and float32 parameter weight \[4 x 3\] on rank 1"):
        job.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))


def raises(_):
    job = hooke.init()
    model, optimizer = small(job)
    for number in range(10**9):
        step(model, optimizer)
        if job.rank == 1 and number == 3:
            raise ValueError("rank 1 has had enough")


def exits(_, leave=sys.exit):
    job = hooke.init()
    model, optimizer = small(job)
    for number in range(10**9):
        step(model, optimizer)
        if job.rank == 1 and number == 3:
            leave(4)


def raises_system_exit(_):
    def leave(status):
        raise SystemExit(status)

    exits(_, leave)


def ends_well_by_system_exit(_):
    job = hooke.init()
    model, optimizer = small(job)
    step(model, optimizer)
    with contextlib.suppress(SystemExit):
        sys.exit(3)
    print(f"ends {job.rank}", flush=True)
    raise SystemExit(0)


def exits_after_an_error(_):
    """The program handles the error of a collective function by an exit."""
    job = hooke.init()
    step(*small(job))
    try:
        job._native._call("hooke_with_center", _WORK(lambda _: 1), None)
    except hooke.Error:
        sys.exit(3)


def cannot_leave(_):
    """Rank 1 does not come to the end of MPI, for which rank 0 waits. Then rank 0 calls, and exits with status 0."""
    job = hooke.init()
    if job.rank == 1:
        job.barrier()  # The one in leaving the job.
        time.sleep(1000)
    for call in (job._native.leave, job._native.place):
        try:
            call()
        except hooke.Error as error:
            print(error, flush=True)
    sys.exit(0)


def exits_alone(_):
    """A rank without mpirun exits with a status of its own, and the process keeps that status."""
    hooke.init()
    raise SystemExit(3)


def forks(_):
    """A forked child of a rank cannot call Hooke. Children end without harm to the rank, whatever way they were
    started."""
    job = hooke.init()
    model, optimizer = small(job)

    class Calls(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            try:
                job.barrier()
            except hooke.Error as error:
                assert "child of process" in str(error)
                return 1
            return 0

    assert sum(sum(batch.tolist()) for batch in DataLoader(Calls(), batch_size=2, num_workers=2)) == 8
    data_set = TensorDataset(torch.arange(8.0))
    for method in ("fork", "forkserver", "spawn"):
        assert sum(x.sum() for (x,) in DataLoader(data_set, num_workers=1, multiprocessing_context=method)) == 28
        step(model, optimizer)
    print(f"forked {job.rank}")


if __name__ == "__main__":
    scenario = sys.argv[1]
    if scenario in SCENARIOS:
        trained(scenario, *sys.argv[2:])
    else:
        globals()[scenario](sys.argv[2])
