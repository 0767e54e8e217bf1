#ifndef HOOKE_SERVER_PARAMETERS_REFERENCE_CENTER_H_
#define HOOKE_SERVER_PARAMETERS_REFERENCE_CENTER_H_

// A reference for tests of shards: how the center moves under the rules in which servers step it. It follows the
// formulas of docs/rules/ in double precision, one value after another. It uses no code of algorithms/, so it finds
// faults there.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// How the groups' contributions become one step of the center.
enum class ReferenceMixing {
  kMeanOfGradients,  // The sum of all gradients, divided by the number of all steps.
  kSumOfGradients,   // One group's sum of gradients, undivided.
  kMeanOfDistances,  // The mean of the distances, each weighted by its steps.
};

// An update rule and its options, as a row of a test's table.
struct ReferenceRule {
  std::string name;
  v1::AveragingSpec::Rule rule = v1::AveragingSpec::ASYNC;
  ReferenceMixing mixing = ReferenceMixing::kMeanOfGradients;
  double rate = 1;  // The optimizer's learning rate. Adam's betas are 0.9 and 0.999, its epsilon 1e-3.
  double momentum = 0;
  bool nesterov = false;
  bool adam = false;
  bool cosine = false;       // The learning rate falls to a tenth along a cosine; otherwise it is constant.
  bool over_factor = false;  // Distances are divided by the cosine's factor of the learning rate.
  double staleness_power = 0;
  uint64_t staleness_bound = 0;
};

// The length of every job that is tested against this reference. Tests make fewer steps than that, so no group makes
// its last one.
constexpr uint32_t kReferenceEpochs = 100;
constexpr uint64_t kReferenceStepsPerEpoch = 4;

// Sets the rule's fields of a job, with a quorum of 1.
void SetRule(const ReferenceRule& rule, v1::JobSpecForShard& job);

// One group's contribution to an update.
struct ReferenceSent {
  uint64_t sequence = 1;  // The group's steps so far.
  uint64_t steps = 1;     // How many of the group's steps this contribution holds.
  std::vector<double> values;
};

// One block of the center.
class ReferenceBlock {
 public:
  // The first `parameters` values are parameters, the rest buffers.
  ReferenceBlock(const ReferenceRule& rule, uint64_t parameters, std::vector<double> values);

  // Makes one group's step under async, ssp or downpour, in a job of `groups` groups. `staleness` is how often other
  // groups have changed the center since this group last got it.
  void StepAlone(const ReferenceSent& sent, uint64_t staleness, uint32_t groups);

  // Makes a round with contributions of some of the `live` live groups. A full round has `interval` steps of each live
  // group.
  void StepTogether(const std::vector<ReferenceSent>& sent, size_t live, uint64_t interval);

  // Begins a new generation of the job, whose groups count their steps and epochs from here on.
  void BeginGeneration(uint64_t first_step, double first_epoch, uint64_t steps_per_epoch);

  const std::vector<double>& values() const { return values_; }
  uint64_t updates() const { return updates_; }

 private:
  // Returns the schedule's factor of the learning rate at a group's step `sequence`.
  double FactorAt(uint64_t sequence) const;
  // Makes one step of one parameter. `w` is the round's share of a full round.
  void StepParameter(uint64_t i, double gradient, double rate, double w);

  const ReferenceRule rule_;
  const uint64_t parameters_;
  std::vector<double> values_;
  std::vector<double> first_;   // Velocity, or Adam's first moment.
  std::vector<double> second_;  // Adam's second moment.
  uint64_t updates_ = 0;
  uint64_t first_step_ = 0;
  double first_epoch_ = 0;
  uint64_t steps_per_epoch_ = kReferenceStepsPerEpoch;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_REFERENCE_CENTER_H_
