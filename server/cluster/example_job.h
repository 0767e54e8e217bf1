#ifndef HOOKE_SERVER_CLUSTER_EXAMPLE_JOB_H_
#define HOOKE_SERVER_CLUSTER_EXAMPLE_JOB_H_

// For tests: a job in which every field is in range.

#include <cstdint>
#include <string>

#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"

namespace hooke {

struct ExampleGroups {
  uint32_t count = 2;
  uint32_t ranks = 2;
};

v1::JobSpec ExampleJob(ExampleGroups groups = {});

v1::SubmitRequest ExampleSubmission(const std::string& submission_id, ExampleGroups groups = {});

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_EXAMPLE_JOB_H_
