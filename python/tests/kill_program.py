"""A training script for kills_test.py: kill_program.py STEPS KILLS SEED OUT.

It trains a line with momentum. Its samples come from a random generator that it keeps. If the servers step, no kept
state fits a step of the program exactly. The samples then come from the number of the step. In each of the group's
first KILLS starts a rank kills itself. The steps, the ranks and the moments within the step follow from the seed. Rank
0 writes what it has at the end to the file OUT.
"""

import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy  # noqa: E402

import hooke.numpy as hooke  # noqa: E402

VALUES, VALUES_OF_SERVERS, BATCH = 400, 3 * 16384, 4  # Servers that step have three blocks, so each rank sends some.
MOMENTS = ("before the gradients are combined", "before the optimizer steps", "before the step is counted", "after the step")


def plan(steps, kills, seed):
    """Returns (step, rank, moment) of each start's death, in the order of the steps."""
    chance = random.Random(seed)
    return [(step, chance.randrange(2), chance.randrange(len(MOMENTS))) for step in sorted(chance.sample(range(1, steps), kills))]


def main(steps, kills, seed, out):
    job = hooke.init()
    deaths = plan(steps, kills, seed)
    start = job.place.incarnation
    step, rank, moment = deaths[start - 1] if start <= kills else (0, -1, 0)
    deadly = (step, moment) if rank == job.rank else (0, 0)

    def survive(now):
        if (job.step + (now < len(MOMENTS) - 1), now) == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    values = VALUES if job.place.steps_locally else VALUES_OF_SERVERS
    samples = job.state(samples=numpy.random.default_rng(job.rank))
    velocity = job.state(velocity=numpy.zeros(values, numpy.float32))
    parameters = job.register({"w": numpy.linspace(-1, 1, values, dtype=numpy.float32)}, steps_total=steps)
    w, gradient = parameters["w"], job.gradients["w"]
    print(f"start {start} goes on from step {job.first_step}, velocity {abs(velocity).sum()}", flush=True)
    while job.step < steps:
        source = samples if job.place.steps_locally else numpy.random.default_rng([job.rank, job.step])
        x = source.normal(size=(BATCH, values)).astype(numpy.float32)
        error = x @ w - x.sum(1)
        gradient[...] = error @ x / BATCH
        survive(0)
        job.combine(float((error**2).mean()))
        survive(1)
        if job.place.steps_locally:
            velocity *= 0.9
            velocity += gradient
            w -= 0.0003 * velocity
        survive(2)
        job.end_step()
        survive(3)
        time.sleep(0.005)  # So a state is kept in every step or two.
    job.finish()
    if job.rank == 0:
        numpy.savez(out, w=w, velocity=velocity, samples=samples.normal(size=3))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
