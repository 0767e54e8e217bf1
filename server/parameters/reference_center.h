#ifndef HOOKE_SERVER_PARAMETERS_REFERENCE_CENTER_H_
#define HOOKE_SERVER_PARAMETERS_REFERENCE_CENTER_H_

// How the center moves by the rules in which servers step it, as docs/rules/ has the formulas: in double precision, one
// value after another. What shards are tested against, so it takes nothing from algorithms/.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// What becomes of what groups send.
enum class ReferenceMixing {
  kMeanOfGradients,  // Of sums of gradients: by all steps.
  kSumOfGradients,   // One group's, as it is.
  kMeanOfDistances,  // Each counts by its steps.
};

// A rule as a test's table has it.
struct ReferenceRule {
  std::string name;
  v1::AveragingSpec::Rule rule = v1::AveragingSpec::ASYNC;
  ReferenceMixing mixing = ReferenceMixing::kMeanOfGradients;
  double rate = 1;  // The optimizer's: 0.9 and 0.999 are the betas of Adam, 1e-3 is its epsilon.
  double momentum = 0;
  bool nesterov = false;
  bool adam = false;
  bool cosine = false;       // The learning rate falls to a tenth by a cosine. Else it stays.
  bool over_factor = false;  // Distances are divided by what the cosine has made of the learning rate.
  double staleness_power = 0;
  uint64_t staleness_bound = 0;
};

// Of every job that is tested so. Schedules are shorter: nobody makes its last step.
constexpr uint32_t kReferenceEpochs = 100;
constexpr uint64_t kReferenceStepsPerEpoch = 4;

// The rule's part of a job: with a quorum of 1.
void SetRule(const ReferenceRule& rule, v1::JobSpecForShard& job);

// One group's part of an update.
struct ReferenceSent {
  uint64_t sequence = 1;  // Its steps so far.
  uint64_t steps = 1;     // How many of them it sends.
  std::vector<double> values;
};

// One block of the center.
class ReferenceBlock {
 public:
  // The first `parameters` values are parameters, the rest buffers.
  ReferenceBlock(const ReferenceRule& rule, uint64_t parameters, std::vector<double> values);

  // async, ssp, downpour: the step of one of `groups` groups, which others have changed the center `staleness` times
  // before, since it got it.
  void StepAlone(const ReferenceSent& sent, uint64_t staleness, uint32_t groups);

  // A round of some groups out of `live`, where a whole one has `interval` steps of each.
  void StepTogether(const std::vector<ReferenceSent>& sent, size_t live, uint64_t interval);

  const std::vector<double>& values() const { return values_; }
  uint64_t updates() const { return updates_; }

 private:
  // The cosine's factor of the learning rate, at a group's so many steps.
  double FactorAt(uint64_t sequence) const;
  // One step of one parameter; `w`: how much of a whole round it is.
  void StepParameter(uint64_t i, double gradient, double rate, double w);

  const ReferenceRule rule_;
  const uint64_t parameters_;
  std::vector<double> values_;
  std::vector<double> first_;   // Velocity, or Adam's first moment.
  std::vector<double> second_;  // Adam's second.
  uint64_t updates_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_REFERENCE_CENTER_H_
