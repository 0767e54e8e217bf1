#!/usr/bin/env python3
"""Samples per second of one group of N ranks, with its exchanges, against torch DDP and N independent ranks running at the same time.

`hooke`: mpirun -n N hooke-rank with a server on this machine. Gradients are summed each step, with an elastic exchange each 16 steps.
`ddp-gloo`: torch DistributedDataParallel over Gloo. Gradients are summed each step (torch_rank.py; lenet and mlp; Debian's python3-torch).
`alone`: N times mpirun -n 1 hooke-rank with no server, at the same time. Their rates are added. All train lenet (or --model) on Fashion-MNIST
with batch 64 per rank and one thread each. Rates are taken between the first and the last progress line of a window of --seconds, so
start-up does not count. Repetitions alternate; the table shows medians, and the ratio is taken within each repetition.
Asked: hooke at least 0.9 of alone. With two ranks, at least 1.3 times ddp-gloo for lenet and 2.5 times for mlp. Otherwise the exit code is 1.
"""

import contextlib
import json
import os
import select
import statistics
import subprocess
import tempfile
import time

import report

# Debian's Python, for which python3-torch is built.
PYTHON = "/usr/bin/python3"
DDP_MODELS = ("lenet", "mlp")
# The least rate of a group, relative to as many ranks that do not communicate with each other.
SHARE_OF_ALONE = 0.9
# The least rate of a group of two ranks, relative to torch DDP, by model.
TIMES_DDP = {"lenet": 1.3, "mlp": 2.5}
DDP_RANKS = 2


# The defaults of a job file: gradients are summed while backward runs.
DEFAULT_COLLECTIVES = {"aggregation": "ALLREDUCE", "overlap": True, "order": "FUNNELED", "bucketMib": 4}


def start_file(folder, name, arguments, ranks, servers, seed, collectives=DEFAULT_COLLECTIVES):
    job = {
        "name": "benchmark",
        "model": {"name": arguments.model},
        "data": {"format": "FORMAT_IDX", "train": arguments.train, "test": arguments.test},
        "train": {
            "epochs": 1000,
            "batchSize": 64,
            "optimizer": {"name": "SGD", "learningRate": 0.01, "momentum": 0.9, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
            "schedule": {"name": "CONSTANT", "stepEpochs": 1, "stepFactor": 1},
            "seed": seed,
        },
        "groups": {"count": 1, "ranks": ranks},
        "averaging": {"rule": "ELASTIC", "interval": 16, "alpha": 0.5},
        "collectives": collectives,
    }
    start = {
        "jobId": f"{name}-{seed}",
        "job": job,
        "group": 0,
        "incarnation": 1,
        "task": "TRAIN",
        "servers": servers,
        "collectiveTimeoutSeconds": 30,
        "exchangeTimeoutSeconds": 5,
    }
    path = os.path.join(folder, f"{name}-{seed}.json")
    with open(path, "w") as file:
        json.dump(start, file)
    return path


def on_ranks(ranks, command):
    """Returns the mpirun command that runs `command` as so many ranks."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *root, *command]


def mpirun(arguments, ranks, start):
    return on_ranks(ranks, rank_command(arguments, start))


def rank_command(arguments, start):
    return [os.path.join(arguments.programs, "hooke-rank"), f"--start-json={start}", "--progress=json"]


def measure(commands, seconds):
    """Runs the commands at the same time and returns the sum of their samples per second over a common window."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with contextlib.ExitStack() as stack:
        runs = [
            stack.enter_context(report.started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment))
            for command in commands
        ]
        progress = {run: [] for run in runs}
        deadline = time.monotonic() + 60 + seconds
        while time.monotonic() < deadline:
            for pipe in select.select([run.stdout for run in runs], [], [], 1)[0]:
                run = next(run for run in runs if run.stdout is pipe)
                line = pipe.readline()
                if not line:
                    raise SystemExit(f"{' '.join(run.args)} ended with status {run.wait()} in the middle of the measurement")
                if line.startswith(b"{"):
                    step = json.loads(line).get("progress", {}).get("step", 0)
                    if int(step) > 0:
                        progress[run].append((time.monotonic(), int(step)))
            # The window opens one second after the last command has made its first step.
            if all(progress.values()):
                opened = max(seen[0][0] for seen in progress.values()) + 1
                if time.monotonic() > opened + seconds:
                    rates = [rate(seen, opened) for seen in progress.values()]
                    if None not in rates:
                        return sum(rates)
        raise SystemExit(f"a program made no progress that could be measured in {60 + seconds:g} s")


def rate(seen, opened):
    """Returns the steps per second between the first and the last progress seen since `opened`; None if there are fewer than two."""
    window = [point for point in seen if point[0] >= opened]
    if len(window) < 2 or window[-1][0] <= window[0][0]:
        return None
    (begin, first), (end, last) = window[0], window[-1]
    return (last - first) / (end - begin)


def ddp_commands(folder, arguments, ranks, batch, repetition):
    rival = [PYTHON, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_rank.py")]
    options = [f"--size={ranks}", f"--model={arguments.model}", f"--batch={batch}", f"--train={arguments.train}", f"--rendezvous={folder}/ddp-{repetition}"]
    return [[*rival, f"--rank={rank}", *options] for rank in range(ranks)]


def why_no_ddp(arguments):
    """Returns the reason why torch DDP cannot run; None if it can."""
    if arguments.model not in DDP_MODELS:
        return f"it has no {arguments.model}"
    if subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode:
        return "no python3-torch: run deploy/install-deps"
    return None


def table(rates):
    """Returns the lines to print and the rows of JSON. `rates` has for each impl the samples per second of every repetition. The ratio is hooke's
    rate divided by that impl's."""
    lines, rows = [f"{'impl':8} {'samples/s':>10} {'min':>8} {'max':>8}"], []
    for impl, values in rates.items():
        median = statistics.median(values)
        ratios = [hooke / other for hooke, other in zip(rates["hooke"], values)] if impl != "hooke" else []
        lines.append(f"{impl:8} {median:10.0f} {min(values):8.0f} {max(values):8.0f}")
        ratio = statistics.median(ratios) if ratios else None
        rows.append({"impl": impl, "samples_per_s": median, "ratio": ratio, "ratio_min": min(ratios, default=None), "ratio_max": max(ratios, default=None)})
    for row in rows:
        if row["ratio"] is not None:
            lines.append(f"hooke / {row['impl']}: median {row['ratio']:.3f}, min {row['ratio_min']:.3f}, max {row['ratio_max']:.3f}")
    return lines, rows


def times_ddp(model, ranks):
    """Returns the least ratio to torch DDP; None if nothing is required."""
    return TIMES_DDP.get(model) if ranks == DDP_RANKS else None


def missed(rows):
    """Returns one line for each requirement that was missed. `rows` are those of table(), with model and ranks."""
    asked = {"alone": lambda row: SHARE_OF_ALONE, "ddp-gloo": lambda row: times_ddp(row["model"], row["ranks"])}
    lines = []
    for row in rows:
        least = asked[row["impl"]](row) if row["impl"] in asked else None
        if least is not None and row["ratio"] < least:
            lines.append(f"hooke has {report.text(row['ratio'], least, 3)} times the samples per second of {row['impl']}; asked is at least {least}")
    return lines


def main():
    def add(parser):
        parser.add_argument("--model", default="lenet", help="as `model` of a job file (default lenet)")
        parser.add_argument("--ranks", type=int, default=2, help="ranks of the group (default 2)")
        parser.add_argument("--seconds", type=float, default=8, help="length of a measurement (default 8)")
        parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
        parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")

    arguments = report.parse_arguments(__doc__, add)
    ranks, batch = arguments.ranks, 64
    rates = {"hooke": [], "ddp-gloo": [], "alone": []}
    reason = why_no_ddp(arguments)
    if reason:
        print(f"SKIPPED: ddp-gloo: {reason}", flush=True)
        del rates["ddp-gloo"]
    with tempfile.TemporaryDirectory() as folder:
        ready = os.path.join(folder, "ready")
        server = [os.path.join(arguments.programs, "hooke-server"), "--listen=127.0.0.1:0", f"--state-dir={folder}/server", f"--ready-file={ready}"]
        with report.started(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            address = report.wait_for_file(ready, process)
            for repetition in range(1, arguments.repetitions + 1):
                group = start_file(folder, "hooke", arguments, ranks, [address], repetition)
                rates["hooke"].append(measure([mpirun(arguments, ranks, group)], arguments.seconds) * ranks * batch)
                if not reason:
                    ddp = ddp_commands(folder, arguments, ranks, batch, repetition)
                    rates["ddp-gloo"].append(measure(ddp, arguments.seconds) * batch)
                alone = [start_file(folder, f"alone{rank}", arguments, 1, [], repetition) for rank in range(ranks)]
                rates["alone"].append(measure([mpirun(arguments, 1, start) for start in alone], arguments.seconds) * batch)
    print(f"training {arguments.model}, {ranks} ranks, batch {batch} each, {arguments.repetitions} repetitions of {arguments.seconds:g} s")
    lines, rows = table(rates)
    print("\n".join(lines))
    common = {"benchmark": "training", "model": arguments.model, "ranks": ranks}
    rows = [{**common, **row} for row in rows]
    report.write_json(arguments.json, rows, {"samples_per_s": 1, "ratio": 3})
    report.judge(missed(rows), not_judged=[f"hooke against ddp-gloo: {reason}"] if reason and times_ddp(arguments.model, ranks) else ())


if __name__ == "__main__":
    report.run(main)
