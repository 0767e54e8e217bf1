#ifndef HOOKE_TESTS_END_TO_END_JOB_TEXT_H_
#define HOOKE_TESTS_END_TO_END_JOB_TEXT_H_

// Makes job files for tests: a small network trains on data that WriteBars has written to a folder as "train" and
// "test".

#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {

struct JobText {
  std::string data;  // The folder of the data.
  int epochs = 3;
  int groups = 2;
  int ranks = 2;
  std::string kinds = {};  // If set, `groups` of the job file: a list of kinds.
  // The smallest network. A step takes about a fifth of the time of `mlp`'s, so tests spend little time on training.
  std::string model = "small-mlp";
  double learning_rate = 0.05;
  std::string averaging = "{rule: elastic, interval: 8}";
  int seed = 1;
};

inline std::string ToYaml(const JobText& job) {
  return absl::StrCat("name: bars\nmodel: ", job.model, "\ndata: {format: idx, train: ", job.data,
                      "/train, test: ", job.data, "/test}\n", "train: {epochs: ", job.epochs,
                      ", batch_size: 16, optimizer: {name: sgd, learning_rate: ", job.learning_rate,
                      ", momentum: 0.9}, seed: ", job.seed, "}\n", "groups: ",
                      job.kinds.empty() ? absl::StrCat("{count: ", job.groups, ", ranks: ", job.ranks, "}") : job.kinds,
                      "\naveraging: ", job.averaging, "\n");
}

// With this many epochs, a job does not end before its test has done its work. Tests cancel such jobs, or they end with
// the test's cluster.
inline constexpr int kLongEpochs = 2000;

}  // namespace hooke

#endif  // HOOKE_TESTS_END_TO_END_JOB_TEXT_H_
