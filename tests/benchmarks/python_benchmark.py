#!/usr/bin/env python3
"""Samples per second of a PyTorch script with hooke.torch, against torch DDP, the built-in trainer and the script without either.

`hooke-torch`: mpirun -n N torch_rank.py --by=hooke. `ddp-gloo`: the same script with DistributedDataParallel over Gloo. `torch-alone`: N times
the script at the same time, with nothing that combines gradients; their rates are added. `built-in`: mpirun -n N hooke-rank without servers
(lenet and mlp). `built-in-alone`: N times hooke-rank at the same time, each alone. `hooke-torch-1` and `torch-1`: one process with and without
hooke.torch. All have batch 64 per rank (gpt: 8) and one thread each. --python names the interpreter, and so the torch, of all scripts; the built-in
trainer has Debian's libtorch. Repetitions alternate; the table shows medians, and ratios are taken within each repetition.
Asked of two ranks: hooke-torch at least 1.3 times ddp-gloo for lenet, 2.5 times for mlp, and ahead for gpt. Per compute second it must have at
least 0.97 of built-in: each rate is divided by that of as many processes that compute the same alone. So kernels and layouts of two programs are not
compared. All have the same settings of malloc. One process with hooke.torch must have at least 0.98 of one without. Otherwise the exit code is 1.
"""

import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import report
import training_benchmark

HERE = pathlib.Path(__file__).resolve().parent
BATCH = {"lenet": 64, "mlp": 64, "gpt": 8}
TIMES_DDP = {"lenet": 1.3, "mlp": 2.5, "gpt": 1.0}
SHARE_OF_BUILT_IN = 0.97
SHARE_OF_PLAIN = 0.98
PER_COMPUTE_SECOND = "built-in per compute second"
# Name of a ratio -> the ways whose rates are multiplied, and those by whose rates the product is divided.
RATIOS = {
    "ddp-gloo": (("hooke-torch",), ("ddp-gloo",)),
    "torch-alone": (("hooke-torch",), ("torch-alone",)),
    "built-in": (("hooke-torch",), ("built-in",)),
    PER_COMPUTE_SECOND: (("hooke-torch", "built-in-alone"), ("torch-alone", "built-in")),
    "torch-1": (("hooke-torch-1",), ("torch-1",)),
}


def script(arguments, by, *options):
    which = [f"--by={by}", f"--model={arguments.model}", f"--batch={BATCH[arguments.model]}", f"--train={arguments.train}"]
    return [arguments.python, str(HERE / "torch_rank.py"), *which, *options]


def ways(arguments, folder, repetition):
    """Returns, for each way to train, its commands and the ranks for which each of them speaks."""
    ranks = arguments.ranks
    ddp = [script(arguments, "ddp", f"--rank={rank}", f"--size={ranks}", f"--rendezvous={folder}/ddp-{repetition}") for rank in range(ranks)]
    made = {"hooke-torch": ([training_benchmark.on_ranks(ranks, script(arguments, "hooke"))], ranks), "ddp-gloo": (ddp, 1)}
    made["torch-alone"] = ([script(arguments, "nothing")] * ranks, 1)
    if arguments.model in training_benchmark.DDP_MODELS:
        start = training_benchmark.start_file(folder, "built-in", arguments, ranks, [], repetition)
        made["built-in"] = ([training_benchmark.mpirun(arguments, ranks, start)], ranks)
        alone = [training_benchmark.start_file(folder, f"alone{rank}", arguments, 1, [], repetition) for rank in range(ranks)]
        made["built-in-alone"] = ([training_benchmark.mpirun(arguments, 1, start) for start in alone], 1)
    made["hooke-torch-1"] = ([script(arguments, "hooke")], 1)
    made["torch-1"] = ([script(arguments, "nothing")], 1)
    return made


def ratios(rates):
    """Returns the median of each ratio whose ways have been measured. It is taken within each repetition."""
    of = {}
    for name, (above, below) in RATIOS.items():
        if rates.keys() >= {*above, *below}:
            each = zip(*(rates[way] for way in (*above, *below)))
            of[name] = statistics.median(math.prod(row[: len(above)]) / math.prod(row[len(above) :]) for row in each)
    return of


def missed(model, ranks, of):
    """Returns one line for each requirement that was missed. `of` are the ratios."""
    asked = {"torch-1": SHARE_OF_PLAIN}
    if ranks == 2:
        asked.update({"ddp-gloo": TIMES_DDP[model], PER_COMPUTE_SECOND: SHARE_OF_BUILT_IN})
    return [
        f"{RATIOS[name][0][0]} has {report.text(of[name], least, 3)} times the samples per second of {name}; asked is at least {least}"
        for name, least in asked.items()
        if name in of and of[name] < least
    ]


def main():
    def add(parser):
        parser.add_argument("--model", default="lenet", choices=sorted(BATCH), help="lenet (default), mlp or gpt, a transformer of 10 million parameters")
        parser.add_argument("--ranks", type=int, default=2, help="ranks of the group (default 2)")
        parser.add_argument("--seconds", type=float, default=6, help="length of a measurement (default 6)")
        parser.add_argument("--python", default=training_benchmark.PYTHON, help="the interpreter with torch (default: Debian's)")
        parser.add_argument("--train", default="/usr/share/datasets/fashion-mnist/train", help="prefix of the IDX files")
        parser.add_argument("--test", default="/usr/share/datasets/fashion-mnist/t10k", help="prefix of the IDX files")

    arguments = report.parse_arguments(__doc__, add)
    found = subprocess.run([arguments.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if found.returncode:
        sys.exit(f"{arguments.python} has no torch: run deploy/install-deps, or name another interpreter by --python")
    os.environ["PYTHONPATH"] = str(HERE.parents[1] / "python")
    os.environ["HOOKE_LIBRARY"] = os.path.join(arguments.programs, "libhooke.so")
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for repetition in range(1, arguments.repetitions + 1):
            for way, (commands, ranks) in ways(arguments, folder, repetition).items():
                rates.setdefault(way, []).append(training_benchmark.measure(commands, arguments.seconds) * ranks * BATCH[arguments.model])
    print(f"python {arguments.model}, {arguments.ranks} ranks, torch {found.stdout.strip()}, {arguments.repetitions} repetitions of {arguments.seconds:g} s")
    of = ratios(rates)
    common = {"benchmark": "python", "model": arguments.model, "ranks": arguments.ranks}
    rows = []
    print(f"{'way':14} {'samples/s':>10} {'min':>8} {'max':>8}")
    for way, values in rates.items():
        print(f"{way:14} {statistics.median(values):10.0f} {min(values):8.0f} {max(values):8.0f}")
        rows.append({**common, "way": way, "samples_per_s": statistics.median(values), "ratio": of.get(way)})
    for name, ratio in of.items():
        print(f"{RATIOS[name][0][0]} / {name}: median {ratio:.3f}")
    if PER_COMPUTE_SECOND in of:
        rows.append({**common, "way": PER_COMPUTE_SECOND, "samples_per_s": None, "ratio": of[PER_COMPUTE_SECOND]})
    report.write_json(arguments.json, rows, {"samples_per_s": 1, "ratio": 3})
    report.judge(missed(arguments.model, arguments.ranks, of))


if __name__ == "__main__":
    report.run(main)
