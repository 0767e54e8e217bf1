#include "worker/data/sampler.h"

#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Draws uniformly from [0, bound); bound >= 1. The standard's distributions differ between libraries, so we use only
// its generator.
uint64_t Below(std::mt19937_64& random, uint64_t bound) {
  // 2^64 mod bound. This many draws would favor small results, so they are repeated.
  const uint64_t uneven = -bound % bound;
  uint64_t draw = random();
  while (draw < uneven) draw = random();
  return draw % bound;
}

absl::Status Zero(const char* option) {
  return absl::InvalidArgumentError(absl::StrCat("sampler: ", option, " is 0; allowed is ", option, " >= 1"));
}

absl::Status TooLarge(const char* option, uint32_t value, uint32_t count) {
  return absl::InvalidArgumentError(
      absl::StrCat("sampler: ", option, " is ", value, "; allowed is ", option, " < ", count));
}

}  // namespace

std::vector<uint32_t> Permutation(const Shuffle& shuffle) {
  // The Fisher-Yates shuffle.
  std::seed_seq sequence{static_cast<uint32_t>(shuffle.seed), static_cast<uint32_t>(shuffle.seed >> 32),
                         static_cast<uint32_t>(shuffle.epoch), static_cast<uint32_t>(shuffle.epoch >> 32)};
  std::mt19937_64 random(sequence);
  std::vector<uint32_t> order(shuffle.samples);
  std::iota(order.begin(), order.end(), 0u);
  for (size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[Below(random, left)]);
  return order;
}

absl::StatusOr<Sampler> Sampler::Make(const SamplerOptions& o) {
  if (o.groups == 0) return Zero("groups");
  if (o.ranks == 0) return Zero("ranks");
  if (o.batch == 0) return Zero("batch");
  if (o.group >= o.groups) return TooLarge("group", o.group, o.groups);
  if (o.rank >= o.ranks) return TooLarge("rank", o.rank, o.ranks);
  if (o.samples > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampler: the training data has ", o.samples, " samples; at most 4294967295 are supported"));
  }
  const uint64_t steps =
      o.samples / o.groups / o.ranks / o.batch;  // We divide one by one, because the product may overflow.
  if (steps == 0) {
    return absl::InvalidArgumentError(absl::StrCat("one step of ", o.groups, " groups x ", o.ranks, " ranks x batch ",
                                                   o.batch, " takes more samples than the training data's ", o.samples,
                                                   "; take a smaller train.batch_size, groups.count or groups.ranks"));
  }
  return Sampler(o, steps);
}

absl::Span<const uint32_t> Sampler::BatchIndices(uint64_t step) {
  const uint64_t epoch = step / steps_per_epoch_;
  if (epoch != epoch_) {
    permutation_ = Permutation({static_cast<uint32_t>(options_.samples), options_.seed, epoch});
    epoch_ = epoch;
  }
  const uint64_t share = static_cast<uint64_t>(options_.group) * options_.ranks + options_.rank;
  const uint64_t batches_before = share * steps_per_epoch_ + step % steps_per_epoch_;
  return absl::MakeConstSpan(permutation_).subspan(batches_before * options_.batch, options_.batch);
}

}  // namespace hooke
