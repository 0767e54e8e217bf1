#include "worker/data/sampler.h"

#include <algorithm>
#include <cstddef>
#include <limits>
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
    return MakeDivided(o, before + first);
  }
  // We divide one by one, because the product may overflow.
  const uint64_t steps = o.samples / o.groups / o.ranks / o.batch;
  if (steps == 0) {
    return absl::InvalidArgumentError(absl::StrCat("one step of ", o.groups, " groups x ", o.ranks, " ranks x batch ",
                                                   o.batch, " takes more samples than the training data's ", o.samples,
                                                   "; take a smaller train.batch_size, groups.count or groups.ranks"));
  }
  return MakeDivided(o, o.group * own + first);
}

absl::StatusOr<Sampler> Sampler::MakeDivided(const SamplerOptions& o, uint64_t samples_before) {
  std::vector<DataGeneration> generations = o.earlier;
  DataGeneration& present = generations.emplace_back();
  present.first_step = o.first_step;
  present.groups.assign(o.groups, {o.ranks, o.batch});
  for (size_t group = 0; group < o.group_samples.size(); ++group) {
    present.groups[group] = {1, static_cast<uint32_t>(o.group_samples[group])};
  }
  absl::StatusOr<Division> division = Division::Make(o.samples, std::move(generations));
  if (!division.ok()) return division.status();
  return Sampler(o, samples_before, *std::move(division));
}

absl::Span<const uint32_t> Sampler::BatchIndices(uint64_t step) {
  if (step < part_.first_step || step - part_.first_step >= part_.steps) {
    part_ = division_.PartOf(step);
    permutation_ = Permutation({static_cast<uint32_t>(options_.samples), options_.seed, part_.epoch});
    auto end = permutation_.begin();
    for (const Range& range : part_.left) {
      const auto from = permutation_.begin() + static_cast<ptrdiff_t>(range.begin);
      const auto size = static_cast<ptrdiff_t>(range.size());
      end = end == from ? end + size : std::copy(from, from + size, end);
    }
    permutation_.erase(end, permutation_.end());
  }
  const uint64_t begin = samples_before_ * part_.steps + (step - part_.first_step) * options_.batch;
  return absl::MakeConstSpan(permutation_).subspan(begin, options_.batch);
}

}  // namespace hooke
