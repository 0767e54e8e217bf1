#include "mpi_group/collectives/replicas.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "mpi_group/reduce/accumulator.h"
#include "mpi_group/reduce/reduce.h"

namespace hooke {
namespace {

absl::Status CheckShapes(absl::Span<const TensorList> replicas) {
  if (replicas.empty()) return absl::InvalidArgumentError("all-reduce of replicas takes at least one list of a rank");
  const TensorList& first = replicas[0];
  for (size_t i = 1; i < replicas.size(); ++i) {
    if (replicas[i].type() == first.type() && replicas[i].size() == first.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "replica ", i, " has ", replicas[i].size(), " values of ", NameOf(replicas[i].type()), ", replica 0 has ",
        first.size(), " of ", NameOf(first.type()), "; all replicas must be of one type and size"));
  }
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT on all ranks if the ranks' arguments differ or some rank's `own` is an error. The group's
// own checks cannot see that ranks disagree on the number of replicas, so it is compared here. `own` is the result of
// CheckShapes() for this rank's lists.
absl::Status Compare(Group& group, absl::Span<const TensorList> replicas, ReduceOp op, const absl::Status& own) {
  const auto lists = static_cast<int64_t>(replicas.size());
  const auto values = replicas.empty() ? 0 : static_cast<int64_t>(replicas[0].size());
  const auto type = replicas.empty() ? 0 : static_cast<int64_t>(replicas[0].type());
  const auto kind = static_cast<int64_t>(op);
  // One maximum finds both extremes: the largest of -x is minus the smallest x. All ranks agree on x if its largest and
  // smallest values are equal.
  int64_t said[] = {own.ok() ? 0 : 1, lists, -lists, values, -values, type, -type, kind, -kind};
  absl::Status status = group.AllReduce(TensorList(absl::MakeSpan(said)), ReduceOp::kMax);
  if (!status.ok()) return status;
  if (!own.ok()) return own;
  if (said[0] != 0) return absl::InvalidArgumentError("another rank's replicas do not fit each other; it says how");
  const absl::string_view names[] = {"number of replicas", "size of a replica", "type", "operation"};
  for (size_t i = 0; i < std::size(names); ++i) {
    if (said[2 * i + 1] == -said[2 * i + 2]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("all-reduce of replicas: the ", names[i], " is not the same on all ranks"));
  }
  return absl::OkStatus();
}

// Calls take(pointers, values) for successive stretches that are contiguous in every list and have 1 to `values_max`
// values. pointers[i] points into list i.
template <typename Take>
void ForEachStretch(absl::Span<const TensorList> lists, uint64_t values_max, const Take& take) {
  struct Place {
    size_t piece = 0;
    size_t offset = 0;
  };
  absl::InlinedVector<Place, 8> places(lists.size());
  absl::InlinedVector<char*, 8> pointers(lists.size());
  uint64_t left = lists[0].bytes();
  while (left > 0) {
    uint64_t bytes = std::min(left, values_max * SizeOf(lists[0].type()));
    for (size_t i = 0; i < lists.size(); ++i) {
      const absl::Span<char> piece = lists[i].pieces()[places[i].piece];
      pointers[i] = piece.data() + places[i].offset;
      bytes = std::min<uint64_t>(bytes, piece.size() - places[i].offset);
    }
    take(absl::MakeConstSpan(pointers), bytes / SizeOf(lists[0].type()));
    left -= bytes;
    for (size_t i = 0; i < lists.size(); ++i) {
      places[i].offset += bytes;
      if (places[i].offset == lists[i].pieces()[places[i].piece].size()) places[i] = {places[i].piece + 1, 0};
    }
  }
}

absl::InlinedVector<const char*, 8> Sources(absl::Span<char* const> pointers) {
  return {pointers.begin(), pointers.end()};
}

// Reduces the rank's own lists into the first one, all-reduces that, and copies the result to the others.
absl::Status ReduceInPlace(Group& group, absl::Span<const TensorList> replicas, ReduceOp op) {
  const DataType type = replicas[0].type();
  ForEachStretch(replicas, replicas[0].size(), [&](absl::Span<char* const> pointers, uint64_t values) {
    Reduce({type, op}, Sources(pointers), pointers.first(1), values);
  });
  absl::Status status = group.AllReduce(replicas[0], op == ReduceOp::kMean ? ReduceOp::kSum : op);
  if (!status.ok()) return status;
  const int addends = static_cast<int>(replicas.size()) * group.size();
  ForEachStretch(replicas, replicas[0].size(), [&](absl::Span<char* const> pointers, uint64_t values) {
    Reduce({type, op, addends}, Sources(pointers.first(1)), pointers, values);
  });
  return absl::OkStatus();
}

// Sums 16-bit values in separate float32 memory, so that they are rounded once.
absl::Status ReduceWide(Group& group, absl::Span<const TensorList> replicas, ReduceOp op) {
  constexpr uint64_t kBlock = 4096;
  const DataType type = replicas[0].type();
  std::vector<float> sums(replicas[0].size());
  std::vector<float> block(std::min<uint64_t>(kBlock, sums.size()));
  absl::Span<float> to = absl::MakeSpan(sums);
  ForEachStretch(replicas, kBlock, [&](absl::Span<char* const> pointers, uint64_t values) {
    Widen(type, {pointers[0], values * SizeOf(type)}, to.first(values));
    for (const char* pointer : pointers.subspan(1)) {
      const absl::Span<float> addends = absl::MakeSpan(block).first(values);
      Widen(type, {pointer, values * SizeOf(type)}, addends);
      ReduceInto({DataType::kFloat32, op}, BytesOf(absl::Span<const float>(addends)), MutableBytesOf(to.first(values)));
    }
    to.remove_prefix(values);
  });
  absl::Status status = group.AllReduce(TensorList(absl::MakeSpan(sums)), ReduceOp::kSum);
  if (!status.ok()) return status;
  FinishReduction(DataType::kFloat32, op, static_cast<int>(replicas.size()) * group.size(),
                  MutableBytesOf(absl::MakeSpan(sums)));
  absl::Span<const float> from = sums;
  ForEachStretch(replicas, kBlock, [&](absl::Span<char* const> pointers, uint64_t values) {
    for (char* pointer : pointers) Narrow(type, from.first(values), {pointer, values * SizeOf(type)});
    from.remove_prefix(values);
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status AllReduceReplicas(Group& group, absl::Span<const TensorList> replicas, ReduceOp op) {
  absl::Status status = Compare(group, replicas, op, CheckShapes(replicas));
  if (!status.ok()) return status;
  if (replicas.size() == 1) return group.AllReduce(replicas[0], op);
  const DataType type = replicas[0].type();
  const int addends = static_cast<int>(replicas.size()) * group.size();
  // A mean of 16-bit values must not round its sum: the sum may be out of the type's range even if the mean is not.
  const bool wide = NeedsWideSums(type, op, addends) || (SizeOf(type) == 2 && op == ReduceOp::kMean);
  return wide ? ReduceWide(group, replicas, op) : ReduceInPlace(group, replicas, op);
}

}  // namespace hooke
