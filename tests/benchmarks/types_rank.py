"""A rank of `tests/benchmarks/run types`: types_rank.py TYPE VALUES STEPS.

Rank 0 prints a line of JSON: the milliseconds of each step, and the bytes that its host sent in a step.
"""

import ctypes
import json
import math
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import numpy  # noqa: E402

from hooke._native import PARAMETER, Native, Tensor  # noqa: E402

WARM_UP = 3
# The bits of 1, 2 and 3.
BITS = {"float32": (0x3F800000, 0x40000000, 0x40400000), "bfloat16": (0x3F80, 0x4000, 0x4040), "float16": (0x3C00, 0x4000, 0x4200)}


def sent():
    """Returns the bytes that have left this host's network device; 0 if it has none."""
    for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "eth0":
            return int(counters.split()[8])
    return 0


def main():
    kind, count, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    whole = numpy.uint32 if kind == "float32" else numpy.uint16
    one, two, three = BITS[kind]
    native = Native()
    rank = native.place().rank
    first = numpy.zeros(count, whole)
    placed = native.register([Tensor("w", (count,), PARAMETER, first.ctypes.data, kind)])[0]
    gradient = numpy.frombuffer((ctypes.c_char * first.nbytes).from_address(placed.gradient), dtype=whole)
    native.begin(0, 0)
    took = []
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            before = sent()
        gradient.fill(three if rank % 2 else one)
        native.barrier()
        began = time.perf_counter()
        native.combine(math.nan)
        took.append(1000 * (time.perf_counter() - began))
        if not (gradient == two).all():
            raise SystemExit(f"rank {rank}: the mean of 1 and 3 is wrong")
        native.end_step(0, 0.0)
    after = sent()
    native.finish()
    native.leave()
    if rank == 0:
        print(json.dumps({"ms": took[WARM_UP:], "sent": (after - before) / steps}), flush=True)


if __name__ == "__main__":
    main()
