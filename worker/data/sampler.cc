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
  const uint64_t own = uint64_t{o.ranks} * o.batch;
  if (!o.group_samples.empty() && (o.group_samples.size() != o.groups || o.group_samples[o.group] != own)) {
    return absl::InvalidArgumentError("sampler: group_samples does not have the samples of each group");
  }
  const uint64_t first = uint64_t{o.rank} * o.batch;
  if (!o.group_samples.empty()) {
    const auto group = o.group_samples.begin() + o.group;
    const uint64_t before = std::accumulate(o.group_samples.begin(), group, uint64_t{0});
    const uint64_t all = std::accumulate(group, o.group_samples.end(), before);
    if (o.samples >= all) return Sampler(o, before + first, o.samples / all);
    return absl::InvalidArgumentError(absl::StrCat("one step of all groups takes ", all,
                                                   " samples, and the training data has ", o.samples,
                                                   "; take a smaller batch_size, or fewer groups or ranks"));
  }
  // We divide one by one, because the product may overflow.
  const uint64_t steps = o.samples / o.groups / o.ranks / o.batch;
  if (steps == 0) {
    return absl::InvalidArgumentError(absl::StrCat("one step of ", o.groups, " groups x ", o.ranks, " ranks x batch ",
                                                   o.batch, " takes more samples than the training data's ", o.samples,
                                                   "; take a smaller train.batch_size, groups.count or groups.ranks"));
  }
  return Sampler(o, o.group * own + first, steps);
}

absl::Span<const uint32_t> Sampler::BatchIndices(uint64_t step) {
  const uint64_t epoch = step / steps_per_epoch_;
  if (epoch != epoch_) {
    permutation_ = Permutation({static_cast<uint32_t>(options_.samples), options_.seed, epoch});
    epoch_ = epoch;
  }
  const uint64_t begin = samples_before_ * steps_per_epoch_ + step % steps_per_epoch_ * options_.batch;
  return absl::MakeConstSpan(permutation_).subspan(begin, options_.batch);
}

}  // namespace hooke
