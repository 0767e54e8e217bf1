#include "mpi_group/collective_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/all_gather.h"
#include "mpi_group/broadcast.h"

namespace hooke {
namespace {

constexpr float kUntouched = -12345.5f;
constexpr absl::Duration kDeadline = absl::Seconds(20);

// Short enough that every list but the shortest takes several.
constexpr uint64_t kChunkValues = 4099;

enum class Numbers { kWhole, kFractions };

// What rank `rank` has at place `index`.
float Input(Numbers numbers, int rank, uint64_t index) {
  const float whole = static_cast<float>((rank * 7919 + index * 104729) % 101) - 50;
  return numbers == Numbers::kWhole ? whole : whole / 53;
}

float Expected(Numbers numbers, ReduceOp op, int ranks, uint64_t index) {
  float result = Input(numbers, 0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const float other = Input(numbers, rank, index);
    if (op == ReduceOp::kMin) {
      result = std::min(result, other);
    } else if (op == ReduceOp::kMax) {
      result = std::max(result, other);
    } else {
      result += other;
    }
  }
  return op == ReduceOp::kMean ? result * (1.0f / static_cast<float>(ranks)) : result;
}

// A rank's list of values, with untouchable memory before, between and after its pieces.
class CaseList {
 public:
  static uint64_t RoomFor(uint64_t values) { return values + 6; }

  CaseList(absl::Span<float> room, const CollectiveCase& collective_case) : room_(room) {
    std::fill(room.begin(), room.end(), kUntouched);
    const uint64_t values = room.size() - RoomFor(0);
    std::vector<uint64_t> cuts = {0, values};
    if (collective_case.pieces) cuts = {0, 0, values / 3, values / 3, values - values / 4, values};
    std::vector<absl::Span<float>> pieces;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      pieces.push_back(room.subspan(cuts[i] + i + 1, cuts[i + 1] - cuts[i]));
    }
    list_ = TensorList(pieces);
  }

  const TensorList& list() const { return list_; }

  void Fill(Numbers numbers, int rank) {
    std::vector<float> values(list_.size());
    for (uint64_t i = 0; i < values.size(); ++i) values[i] = Input(numbers, rank, i);
    Scatter(values, list_);
  }

  std::vector<float> Values() const {
    std::vector<float> values(list_.size());
    Gather(list_, absl::MakeSpan(values));
    return values;
  }

  // The values are expected(index), to within `tolerance`.
  template <typename Expected>
  void Expect(const Expected& expected, float tolerance) const {
    const std::vector<float> values = Values();
    uint64_t wrong = 0;
    while (wrong < values.size() && std::abs(values[wrong] - expected(wrong)) <= tolerance) ++wrong;
    if (wrong < values.size()) {
      FAIL() << values[wrong] << " at " << wrong << " of " << values.size() << " instead of " << expected(wrong);
    }
    ExpectUntouched();
  }

  void ExpectUntouched() const {
    const size_t untouched = std::count(room_.begin(), room_.end(), kUntouched);
    EXPECT_EQ(untouched, room_.size() - list_.size()) << "memory outside of the list was written";
  }

 private:
  const absl::Span<float> room_;
  TensorList list_;
};

using BroadcastFunction = std::function<absl::Status(const TensorList&, int root)>;

void ExpectSameOnAllRanks(const CaseList& list, const BroadcastFunction& broadcast) {
  const std::vector<float> own = list.Values();
  std::vector<float> first = own;
  ASSERT_EQ(broadcast(TensorList(absl::MakeSpan(first)), 0), absl::OkStatus());
  if (own.empty()) return;
  EXPECT_EQ(std::memcmp(own.data(), first.data(), own.size() * sizeof(float)), 0) << "not bitwise what rank 0 has";
}

// Even parts; or uneven ones, the last of which leave every fourth rank without values and the list's end in no part.
std::vector<ValueRange> Parts(uint64_t values, int ranks, bool even) {
  std::vector<ValueRange> parts = EvenParts(values, ranks);
  if (even) return parts;
  for (int rank = 0; rank < ranks; ++rank) {
    parts[rank].end = rank % 4 == 3 ? parts[rank].begin : parts[rank].end - parts[rank].size() / (rank + 2);
  }
  return parts;
}

// On entry rank r's own part is its own numbers; on return every part is its rank's, and the rest is as it was.
template <typename AllGather>
void CheckParts(CaseList& list, int rank, int ranks, bool even, const AllGather& all_gather) {
  const std::vector<ValueRange> parts = Parts(list.list().size(), ranks, even);
  list.Fill(Numbers::kFractions, rank);
  ASSERT_EQ(all_gather(parts), absl::OkStatus());
  list.Expect(
      [&](uint64_t index) {
        for (int owner = 0; owner < ranks; ++owner) {
          if (index >= parts[owner].begin && index < parts[owner].end) return Input(Numbers::kFractions, owner, index);
        }
        return Input(Numbers::kFractions, rank, index);
      },
      0);
}

void CheckGroupIn(absl::Span<float> room, Group& group, const CollectiveCase& collective_case) {
  CaseList list(room, collective_case);
  const int n = group.size();
  const auto broadcast = [&](const TensorList& values, int root) { return group.Broadcast(values, root); };
  for (Numbers numbers : {Numbers::kWhole, Numbers::kFractions}) {
    list.Fill(numbers, group.rank());
    ASSERT_EQ(group.AllReduce(list.list(), collective_case.op), absl::OkStatus());
    list.Expect([&](uint64_t index) { return Expected(numbers, collective_case.op, n, index); },
                numbers == Numbers::kWhole ? 0 : 1e-5f);
    ExpectSameOnAllRanks(list, broadcast);
  }
  for (bool even : {true, false}) {
    CheckParts(list, group.rank(), n, even,
               [&](absl::Span<const ValueRange> parts) { return group.AllGather(list.list(), parts); });
  }
  list.Fill(Numbers::kFractions, group.rank());
  ASSERT_EQ(group.Broadcast(list.list(), n - 1), absl::OkStatus());
  list.Expect([&](uint64_t index) { return Input(Numbers::kFractions, n - 1, index); }, 0);
  ASSERT_EQ(group.Barrier(), absl::OkStatus());
}

}  // namespace

std::vector<CollectiveCase> AllCollectiveCases() {
  std::vector<CollectiveCase> cases;
  for (SizeClass size : {SizeClass::kZero, SizeClass::kOne, SizeClass::kRanksMinusOne, SizeClass::kRanks,
                         SizeClass::kRanksPlusOne, SizeClass::kOdd, SizeClass::kLarge}) {
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax}) {
      for (bool pieces : {false, true}) cases.push_back({size, op, pieces});
    }
  }
  return cases;
}

std::string NameOf(const CollectiveCase& collective_case) {
  static constexpr const char* kSizes[] = {"None", "One", "RanksMinusOne", "Ranks", "RanksPlusOne", "Odd", "Large"};
  static constexpr const char* kOps[] = {"Sum", "Mean", "Min", "Max"};
  return absl::StrCat(kSizes[static_cast<int>(collective_case.size)], kOps[static_cast<int>(collective_case.op)],
                      collective_case.pieces ? "InPieces" : "");
}

uint64_t Values(SizeClass size, int ranks) {
  switch (size) {
    case SizeClass::kZero:
      return 0;
    case SizeClass::kOne:
      return 1;
    case SizeClass::kRanksMinusOne:
      return ranks - 1;
    case SizeClass::kRanks:
      return ranks;
    case SizeClass::kRanksPlusOne:
      return ranks + 1;
    case SizeClass::kOdd:
      return 1009;
    case SizeClass::kLarge:
      return 100003;
  }
  return 0;
}

void CheckAllReduce(Transport& transport, const AllReduceFunction& all_reduce, bool in_rank_order,
                    const CollectiveCase& collective_case) {
  const int n = transport.size();
  std::vector<float> room(CaseList::RoomFor(Values(collective_case.size, n)));
  CaseList list(absl::MakeSpan(room), collective_case);
  Scratch scratch;
  const Call call = {absl::Now() + kDeadline, scratch, kChunkValues};
  for (Numbers numbers : {Numbers::kWhole, Numbers::kFractions}) {
    list.Fill(numbers, transport.rank());
    ASSERT_EQ(all_reduce(transport, list.list(), collective_case.op, call), absl::OkStatus());
    list.Expect([&](uint64_t index) { return Expected(numbers, collective_case.op, n, index); },
                in_rank_order || numbers == Numbers::kWhole ? 0 : 1e-5f);
    ExpectSameOnAllRanks(
        list, [&](const TensorList& values, int root) { return BinomialBroadcast(transport, values, root, call); });
  }
}

void CheckBroadcast(Transport& transport, const CollectiveCase& collective_case) {
  const int n = transport.size();
  std::vector<float> room(CaseList::RoomFor(Values(collective_case.size, n)));
  CaseList list(absl::MakeSpan(room), collective_case);
  Scratch scratch;
  const Call call = {absl::Now() + kDeadline, scratch, kChunkValues};
  for (int root = 0; root < n; ++root) {
    list.Fill(Numbers::kFractions, transport.rank());
    ASSERT_EQ(BinomialBroadcast(transport, list.list(), root, call), absl::OkStatus());
    list.Expect([&](uint64_t index) { return Input(Numbers::kFractions, root, index); }, 0);
  }
}

void CheckAllGather(Transport& transport, const CollectiveCase& collective_case) {
  const int n = transport.size();
  std::vector<float> room(CaseList::RoomFor(Values(collective_case.size, n)));
  CaseList list(absl::MakeSpan(room), collective_case);
  Scratch scratch;
  const Call call = {absl::Now() + kDeadline, scratch, kChunkValues};
  for (bool even : {true, false}) {
    CheckParts(list, transport.rank(), n, even,
               [&](absl::Span<const ValueRange> parts) { return RingAllGather(transport, list.list(), parts, call); });
  }
}

void CheckGroup(Group& group, const CollectiveCase& collective_case) {
  const uint64_t room = CaseList::RoomFor(Values(collective_case.size, group.size()));
  {
    SCOPED_TRACE("in the test's memory");
    std::vector<float> own(room);
    CheckGroupIn(absl::MakeSpan(own), group, collective_case);
  }
  SCOPED_TRACE("in the group's arena");
  const absl::StatusOr<absl::Span<float>> arena = group.AllocateShared(room);
  ASSERT_EQ(arena.status(), absl::OkStatus());
  EXPECT_EQ(std::count(arena->begin(), arena->end(), 0.0f), room);
  CheckGroupIn(*arena, group, collective_case);
}

}  // namespace hooke
