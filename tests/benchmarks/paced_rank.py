#!/usr/bin/python3
"""A rank that rests in place of computing, so that groups on one machine take no cores from one another. Its job ends when it is cancelled.

STEP_TIMES in its environment is a folder in which it writes when each step ended."""

import os
import time

import numpy

import hooke.numpy as hooke
import step_times

STEP_SECONDS = 0.01
VALUES = 100_000

job = hooke.init()
job.register({"w": numpy.zeros(VALUES, numpy.float32)}, steps_total=10**9)
steps = step_times.Writer(os.environ["STEP_TIMES"], job.group, job.place.incarnation) if job.rank == 0 else None
begun = time.monotonic()
while not job.stopping:
    begun = max(begun + STEP_SECONDS, time.monotonic())
    time.sleep(max(begun - time.monotonic(), 0))
    job.combine(0.0)
    job.end_step(samples=1)
    if steps:
        steps.add(time.monotonic())
job.finish()
