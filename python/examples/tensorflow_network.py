#!/usr/bin/python3
"""A small network in Keras with TensorFlow, with Hooke's plain arrays. Keras keeps the model and the optimizer; gradients come from it by DLPack."""

import argparse

import numpy
import tensorflow

import hooke.numpy as hooke


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=32, help="samples of each rank in a step")
    arguments = parser.parse_args()
    job = hooke.init()
    tensorflow.keras.utils.set_random_seed(job.seed)
    layers = tensorflow.keras.layers
    model = tensorflow.keras.Sequential([tensorflow.keras.Input((4,)), layers.Dense(32, "tanh"), layers.Dense(1)])
    optimizer = tensorflow.keras.optimizers.SGD(0.05)
    variables = {variable.path: variable for variable in model.trainable_variables}
    parameters = job.register({name: variable.numpy() for name, variable in variables.items()}, steps_total=arguments.steps)

    @tensorflow.function
    def loss_and_gradients(x, y):
        with tensorflow.GradientTape() as tape:
            loss = tensorflow.reduce_mean((model(x, training=True)[:, 0] - y) ** 2)
        return loss, tape.gradient(loss, list(variables.values()))

    while job.step < arguments.steps and not job.stopping:
        for name, variable in variables.items():
            variable.assign(parameters[name])  # An exchange or a restart changes the job's values.
        # The samples of a step of all ranks, of which this rank takes its part.
        x = numpy.random.default_rng([job.seed, job.step, job.group]).normal(size=(job.ranks * arguments.batch, 4)).astype(numpy.float32)
        x = x[job.rank * arguments.batch : (job.rank + 1) * arguments.batch]
        loss, gradients = loss_and_gradients(x, numpy.sin(x[:, 0]) * x[:, 1])
        for name, gradient in zip(variables, gradients):
            job.gradients[name][...] = numpy.from_dlpack(gradient)
        job.combine(float(loss))
        if job.place.steps_locally:  # Under rules such as `sync` the servers step, by the job's train.optimizer.
            # TensorFlow takes only memory that is aligned to 64 bytes, so here it gets copies.
            optimizer.apply_gradients((tensorflow.constant(job.gradients[name]), variable) for name, variable in variables.items())
            for name, variable in variables.items():
                parameters[name][...] = variable.numpy()
        job.end_step(samples=arguments.batch)
    job.finish()
    if job.rank == 0:
        print(f"step {job.step}: loss {job.loss:.6f}", flush=True)


if __name__ == "__main__":
    main()
