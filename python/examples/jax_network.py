#!/usr/bin/python3
"""A small network in JAX, with Hooke's plain arrays. JAX computes the gradients; arrays travel between both by DLPack."""

import argparse

import jax
import numpy

import hooke.numpy as hooke


def loss_of(parameters, x, y):
    hidden = jax.numpy.tanh(x @ parameters["w1"] + parameters["b1"])
    return (((hidden @ parameters["w2"])[:, 0] - y) ** 2).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=32, help="samples of each rank in a step")
    arguments = parser.parse_args()
    job = hooke.init()
    random = numpy.random.default_rng(job.seed)
    initial = {"w1": random.normal(size=(4, 32)), "b1": numpy.zeros(32), "w2": random.normal(size=(32, 1)) / 6}
    parameters = job.register({name: values.astype(numpy.float32) for name, values in initial.items()}, steps_total=arguments.steps)
    loss_and_gradients = jax.jit(jax.value_and_grad(loss_of))
    while job.step < arguments.steps and not job.stopping:
        # The samples of a step of all ranks, of which this rank takes its part.
        x = numpy.random.default_rng([job.seed, job.step, job.group]).normal(size=(job.ranks * arguments.batch, 4)).astype(numpy.float32)
        x = x[job.rank * arguments.batch : (job.rank + 1) * arguments.batch]
        # JAX sees the job's memory itself where its alignment allows that. The values change only after JAX has read
        # them.
        seen = {name: jax.dlpack.from_dlpack(values) for name, values in parameters.items()}
        loss, gradients = jax.block_until_ready(loss_and_gradients(seen, x, numpy.sin(x[:, 0]) * x[:, 1]))
        for name, gradient in gradients.items():
            job.gradients[name][...] = numpy.from_dlpack(gradient)
        job.combine(float(loss))
        if job.place.steps_locally:  # Under rules such as `sync` the servers step, by the job's train.optimizer.
            for name, values in parameters.items():
                values -= 0.05 * job.gradients[name]
        job.end_step(samples=arguments.batch)
    job.finish()
    if job.rank == 0:
        print(f"step {job.step}: loss {job.loss:.6f}", flush=True)


if __name__ == "__main__":
    main()
