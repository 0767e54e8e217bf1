#ifndef HOOKE_WORKER_DATA_SAMPLER_H_
#define HOOKE_WORKER_DATA_SAMPLER_H_

// Decides which samples a rank trains on at each step. Pure: the same options give the same batches on every platform.
// Any step can be asked for, so a restarted group goes on where it was.
//
// Each epoch has its own permutation of the data, made from (seed, epoch). It is cut into one share for each rank of
// each group, so no sample is seen twice in an epoch. Samples that do not fill a batch for every rank are left out.
// Which ones these are changes from epoch to epoch. If the number of groups has changed, what earlier groups have left
// of an epoch is divided anew (division.h).

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/data/division.h"

namespace hooke {

struct SamplerOptions {
  uint64_t samples = 0;  // Samples in the data set; < 2^32.
  uint32_t groups = 1;   // >= 1.
  uint32_t ranks = 1;    // Ranks in each group; >= 1.
  uint32_t batch = 1;    // Samples per rank and step; >= 1.
  uint64_t seed = 0;
  uint32_t group = 0;  // The group to which the rank belongs; < groups.
  uint32_t rank = 0;   // < ranks.
  // The samples of each group in a step, if groups are not alike; that of `group` is ranks * batch. Empty: all groups
  // have as many.
  std::vector<uint64_t> group_samples = {};
  // Generations of the job before the present one, oldest first, and the first step of the present one.
  std::vector<DataGeneration> earlier = {};
  uint64_t first_step = 0;
};

// Identifies the permutation of [0, samples) for one epoch.
struct Shuffle {
  uint32_t samples = 0;
  uint64_t seed = 0;
  uint64_t epoch = 0;
};
std::vector<uint32_t> Permutation(const Shuffle& shuffle);

// The batches of one rank. Not thread-safe. Keeps one epoch's permutation: 4 bytes per sample.
class Sampler {
 public:
  // Makes a sampler. INVALID_ARGUMENT: an option is out of range (the message names it), or one step of all groups
  // takes more samples than there are.
  static absl::StatusOr<Sampler> Make(const SamplerOptions& options);

  // How many steps epochs have, and which epoch a step belongs to.
  const Division& division() const { return division_; }

  // The samples of this rank's step `step`; steps count from 0 over all epochs. The span is valid until the next call
  // or the sampler's end. The first call in an epoch makes its permutation.
  absl::Span<const uint32_t> BatchIndices(uint64_t step);

 private:
  static absl::StatusOr<Sampler> MakeDivided(const SamplerOptions& options, uint64_t samples_before);
  Sampler(const SamplerOptions& options, uint64_t samples_before, Division division)
      : options_(options), samples_before_(samples_before), division_(std::move(division)) {}

  SamplerOptions options_;
  uint64_t samples_before_;  // The samples in a step of all groups and ranks before this one.
  Division division_;
  Division::Part part_;  // The epoch of `permutation_`, or what is left of it; 0 steps: there is none yet.
  std::vector<uint32_t> permutation_;  // The samples that are left of the epoch, in order.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_SAMPLER_H_
