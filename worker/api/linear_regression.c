/*
 * Linear regression with libhooke, without any framework: y = 2 x0 - 3 x1 + 1. Each rank makes samples of its own.
 *
 *   linear_regression [STEPS]                alone
 *   mpirun -n 2 linear_regression [STEPS]    two ranks, without servers
 *   a job with `command: [linear_regression, "200"]`: groups and servers, as the job says
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/api/hooke.h"

enum { kInputs = 2, kBatch = 16 };

static hooke_job* job;

/* Ends the program, and with it the group, after an error. */
static void check(hooke_code code) {
  if (code != HOOKE_OK) hooke_fail(job, code, hooke_message());
}

/* A number from -1 to 1. The same state gives the same number. */
static float draw(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)(*state >> 40) / (1 << 23) - 1;
}

struct line {
  int shown;
  const float* weight;
  const float* bias;
};

/* Prints the center's line, once per job. */
static int show(void* argument) {
  const struct line* line = argument;
  if (!line->shown) return 0;
  printf("center: y = %.3f x0 %+.3f x1 %+.3f\n", line->weight[0], line->weight[1], *line->bias);
  return fflush(stdout);
}

int main(int argc, char** argv) {
  const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;
  check(hooke_join(HOOKE_API_VERSION, &job));
  hooke_place place;
  check(hooke_get_place(job, &place));

  const uint64_t shape[] = {kInputs};
  float initial[kInputs + 1] = {0};
  hooke_tensor tensors[] = {
      {.name = "weight", .shape = shape, .dimensions = 1, .device = HOOKE_HOST, .values = initial},
      {.name = "bias", .device = HOOKE_HOST, .values = initial + kInputs},
  };
  check(hooke_register(job, tensors, 2));
  float* const weight = tensors[0].values;
  float* const bias = tensors[1].values;
  float* const weight_gradient = tensors[0].gradient;
  float* const bias_gradient = tensors[1].gradient;

  const hooke_plan plan = {.steps_total = steps};
  uint64_t step = 0;
  check(hooke_begin(job, &plan, &step));
  while (step < steps) {
    uint64_t state = place.seed + step * place.ranks_of_all + place.ranks_before + place.rank;
    draw(&state);
    float loss = 0;
    for (int i = 0; i < kInputs; ++i) weight_gradient[i] = 0;
    *bias_gradient = 0;
    for (int sample = 0; sample < kBatch; ++sample) {
      const float x[kInputs] = {draw(&state), draw(&state)};
      const float error = weight[0] * x[0] + weight[1] * x[1] + *bias - (2 * x[0] - 3 * x[1] + 1);
      loss += error * error / (2 * kBatch);
      for (int i = 0; i < kInputs; ++i) weight_gradient[i] += error * x[i] / kBatch;
      *bias_gradient += error / kBatch;
    }
    check(hooke_combine(job, loss, NULL, NULL));
    if (place.steps_locally) {
      for (int i = 0; i < kInputs; ++i) weight[i] -= 0.5f * weight_gradient[i];
      *bias -= 0.5f * *bias_gradient;
    }
    const hooke_step done = {.samples = kBatch};
    check(hooke_end_step(job, &done, &step));
  }
  check(hooke_finish(job));
  const hooke_place* p = &place;
  struct line line = {p->group == 0 && p->rank == 0, weight, bias};
  if (line.shown) printf("%u ranks, %u groups, rule %s\n", p->ranks, p->groups, p->rule);
  check(hooke_with_center(job, show, &line));
  check(hooke_leave(job));
  return 0;
}
