#ifndef HOOKE_WORKER_DATA_DIVISION_H_
#define HOOKE_WORKER_DATA_DIVISION_H_

// Divides the training data among the groups of a job. The number of groups may change while the job runs: each change
// begins a new generation, which divides what the earlier ones have left. Pure.
//
// An epoch is a list of positions in its permutation. A generation cuts the list into one share for each rank of each
// group, and a step takes the next batch of every share. What fills no step of all groups is left out. When the
// generation ends, its groups may have come to different places, even to different epochs. What is left of an epoch is
// the rest of all shares, and what was left out. The next generation divides that list. It first works through the
// epochs that are partly left, in order, then through whole ones. An epoch that all groups have finished is over.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/sharding.h"

namespace hooke {

// A group's share in a generation.
struct GroupShare {
  uint32_t ranks = 1;  // >= 1.
  uint32_t batch = 1;  // Samples per rank and step; >= 1.
  // In a generation that has ended: the group's last step that counts. Steps count from the generation's first step.
  uint64_t last_step = 0;

  uint64_t samples() const { return uint64_t{ranks} * batch; }
};

struct DataGeneration {
  uint64_t first_step = 0;  // Steps of all groups count from here; at least the last steps of earlier generations.
  std::vector<GroupShare> groups;
};

class Division {
 public:
  // Divides `samples` samples. The last of `generations` is the present one; there is at least one.
  // INVALID_ARGUMENT: there are no groups, or one step of all groups takes more samples than there are.
  static absl::StatusOr<Division> Make(uint64_t samples, std::vector<DataGeneration> generations);

  // An epoch, or what earlier generations have left of it.
  struct Part {
    uint64_t epoch = 0;
    uint64_t first_step = 0;
    uint64_t steps = 0;
    std::vector<Range> left;  // Positions in the epoch's permutation, ascending.
    uint64_t samples = 0;     // The number of positions in `left`.
  };
  // Returns the part to which a step belongs. Steps count from 0, so after s steps, step s is the next one. The step is
  // at least the generation's first one.
  Part PartOf(uint64_t step) const;

  // Steps of a group in a whole epoch; >= 1.
  uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  uint64_t first_step() const { return first_step_; }
  // Returns how many steps a group will have made, in all generations, when `epochs` epochs are over.
  uint64_t StepsTotal(uint64_t epochs) const;
  // Returns the passes over the data, by all groups together, when a group has made `step` steps. It counts work, so it
  // grows evenly, also while the groups go through what is left of several epochs.
  double EpochAt(uint64_t step) const;
  // Returns the number of epochs that are over right after this step; 0 if the step does not end one.
  uint64_t EpochsEndedBy(uint64_t step) const;

 private:
  Division(uint64_t samples, const std::vector<GroupShare>& groups);

  Part WholePart(uint64_t epoch) const;
  // Returns what the groups have left of the part; `samples` is 0 if nothing is left or the epoch is over.
  static Part LeftOf(const Part& part, const std::vector<GroupShare>& groups);
  // Makes this the division of a generation that follows `before`, of which `groups` are the groups.
  void Follow(const Division& before, const std::vector<GroupShare>& groups, uint64_t first_step);

  uint64_t samples_;
  uint64_t step_samples_ = 0;  // Samples in a step of all groups.
  uint64_t steps_per_epoch_ = 1;
  uint64_t first_step_ = 0;
  std::vector<Part> parts_;   // Epochs that are partly left, ascending.
  uint64_t whole_epoch_ = 0;  // The first whole epoch.
  uint64_t whole_step_ = 0;   // Its first step.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_DIVISION_H_
