#ifndef HOOKE_SERVER_PARAMETERS_TEST_CENTER_H_
#define HOOKE_SERVER_PARAMETERS_TEST_CENTER_H_

// A small center for tests: the messages with which its groups attach, and initial values.

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Describes a center of one parameter "w" with `values` values. The rule is elastic.
struct TestCenter {
  std::string job_id = "job-1";
  std::string job_key = "a job's key";
  uint64_t values = 10;
  uint32_t groups = 2;
  uint32_t ranks = 1;
  uint32_t shard_index = 0;
  uint32_t shard_count = 1;
  double alpha = 0.25;
  uint32_t compression = 0;  // The value of JobSpecForShard.compression.
  // The generation of the job, by its first incarnation, and its first step.
  uint32_t first_incarnation = 0;
  uint64_t first_step = 0;
};

// Returns the request with which rank 0 of a group's incarnation attaches.
v1::AttachRequest MakeAttachRequest(const TestCenter& center, uint32_t group = 0, uint32_t incarnation = 1);

// Returns the request of MakeAttachRequest with `rule`, under which the servers step the center. The job has plain SGD
// at this learning rate, an exchange after each step, rounds without a grace window, one epoch of 100 steps, and no
// buffers.
v1::AttachRequest MakeStepRequest(const TestCenter& center, v1::AveragingSpec::Rule rule, double learning_rate);

v1::Sender MakeSender(const TestCenter& center, uint32_t group = 0, uint32_t rank = 0, uint32_t incarnation = 1);

// Returns the sender of rank 0 of group 0 of job `job_id`, with the default key.
v1::Sender SenderOf(const std::string& job_id);

// Returns `count` different values. The value with index i, from `first` on, is i / 8 + shift, which is exact in
// float32 for small i.
std::vector<float> Ramp(uint64_t first, uint64_t count, float shift = 0);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_CENTER_H_
