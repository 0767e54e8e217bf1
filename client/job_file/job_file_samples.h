#ifndef HOOKE_CLIENT_JOB_FILE_JOB_FILE_SAMPLES_H_
#define HOOKE_CLIENT_JOB_FILE_JOB_FILE_SAMPLES_H_

// Job files for tests, and what is wrong with one.

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/job_file/local_job_file.h"

namespace hooke {

// The sample of the documentation.
constexpr char kSample[] = R"(name: fashion
model: lenet
data: {format: idx, train: fm/train, test: /abs/t10k}
train: {epochs: 4, batch_size: 64, optimizer: {name: sgd, learning_rate: 0.05, momentum: 0.9}, seed: 1}
groups: {count: 2, ranks: 2}
averaging: {rule: elastic, interval: 16}
)";

// The shortest possible file.
constexpr char kLeast[] = "name: a\nmodel: mlp\ndata: {train: a, test: b}\n";

// Returns the error of a job file with this text, which is called "job.yaml"; "no error" if it has none.
inline std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<LocalJobFile> file = ParseJobFile(text, "job.yaml", "/jobs");
  if (file.ok()) return "no error";
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_JOB_FILE_SAMPLES_H_
