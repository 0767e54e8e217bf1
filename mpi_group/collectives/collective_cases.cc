#include "mpi_group/collectives/collective_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/collectives/broadcast.h"
#include "mpi_group/collectives/case_values.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kBFloat16,
                               DataType::kFloat16, DataType::kInt32,   DataType::kInt64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax};

// The Call for a function under test. Chunks are so short that all but the shortest lists take several. Lists of 1009
// values get still shorter chunks, and a smaller window.
struct CaseCall {
  explicit CaseCall(const CollectiveCase& collective_case) {
    if (collective_case.size != SizeClass::kOdd) return;
    call.chunk_bytes = 256;
    call.window = collective_case.pieces ? 3 : 1;
  }

  Scratch scratch;
  Call call = {SteadyNow() + absl::Seconds(60), scratch, /*chunk_bytes=*/4096};
};

// The memory of one rank's list.
std::vector<double> Room(uint64_t values) { return std::vector<double>(CaseList::RoomBytes(values) / sizeof(double)); }

std::string NameOf(Numbers numbers) {
  switch (numbers) {
    case Numbers::kWhole:
      return "whole numbers";
    case Numbers::kFractions:
      return "fractions";
    case Numbers::kOneLarge:
      return "a large number and ones";
  }
  return "unknown numbers";
}

// True if these numbers test something that whole numbers do not.
bool Differs(Numbers numbers, DataType type, ReduceOp op) {
  if (numbers == Numbers::kWhole) return true;
  const bool is_float = type != DataType::kInt32 && type != DataType::kInt64;
  return op == ReduceOp::kSum && (numbers == Numbers::kFractions ? is_float : SizeOf(type) == 2);
}

// Calls check(op, numbers) for all combinations worth testing. These are whole numbers for every reduction, fractions
// for sums of floats, and kOneLarge for sums of 16-bit values.
template <typename Check>
void ForEachReduction(DataType type, const Check& check) {
  for (ReduceOp op : kOps) {
    for (Numbers numbers : {Numbers::kWhole, Numbers::kFractions, Numbers::kOneLarge}) {
      if (!Differs(numbers, type, op)) continue;
      SCOPED_TRACE(absl::StrCat(NameOf(op), " of ", NameOf(numbers)));
      check(op, numbers);
    }
  }
}

// Calls check(list, type) for each type, with a list whose memory is `room`.
template <typename Check>
void ForEachType(absl::Span<char> room, uint64_t values, const CollectiveCase& collective_case, const Check& check) {
  for (DataType type : kTypes) {
    SCOPED_TRACE(absl::StrCat(NameOf(collective_case), ", ", values, " of ", NameOf(type)));
    CaseList list(room, type, values, collective_case.pieces);
    check(list, type);
  }
}

template <typename Check>
void ForEachTypeOn(const Transport& transport, const CollectiveCase& collective_case, const Check& check) {
  const uint64_t values = Values(collective_case.size, transport.size());
  std::vector<double> room = Room(values);
  const absl::Span<char> bytes(reinterpret_cast<char*>(room.data()), room.size() * sizeof(double));
  ForEachType(bytes, values, collective_case, check);
}

std::set<int> Roots(int ranks) { return {0, ranks / 2, ranks - 1}; }

// Three layouts of parts: even ones; uneven ones that leave values out and give every fourth rank nothing; and one part
// with all values.
std::vector<Parts> PartsToTry(uint64_t values, int ranks) {
  const Parts even = EvenParts(values, ranks);
  Parts uneven = even;
  Parts single = even;
  for (int rank = 0; rank < ranks; ++rank) {
    uneven[rank].end = rank % 4 == 3 ? even[rank].begin : even[rank].end - even[rank].size() / (rank + 2);
    single[rank] = rank < ranks / 2 ? ValueRange{0, 0} : ValueRange{values, values};
  }
  single[ranks / 2] = {0, values};
  return {even, uneven, single};
}

// ---- Checks of single operations. The function passed to a check calls the operation on the list.

template <typename AllReduce, typename Broadcast>
void CheckAllReduces(CaseList& list, DataType type, int rank, int ranks, const AllReduce& all_reduce,
                     const Broadcast& broadcast) {
  ForEachReduction(type, [&](ReduceOp op, Numbers numbers) {
    list.Fill(InputOf(type, numbers, rank));
    ASSERT_EQ(all_reduce(op), absl::OkStatus());
    list.Expect(ReductionOf(type, numbers, op, ranks));
    const int64_t own = list.Hash();
    int64_t first = own;
    ASSERT_EQ(broadcast(TensorList(absl::MakeSpan(&first, 1))), absl::OkStatus());
    EXPECT_EQ(own, first) << "not bitwise what rank 0 has";
  });
}

template <typename ReduceScatter>
void CheckReduceScatters(CaseList& list, DataType type, int rank, int ranks, const ReduceScatter& reduce_scatter) {
  for (const Parts& parts : PartsToTry(list.list().size(), ranks)) {
    ForEachReduction(type, [&](ReduceOp op, Numbers numbers) {
      list.Fill(InputOf(type, numbers, rank));
      ASSERT_EQ(reduce_scatter(parts, op), absl::OkStatus());
      list.Expect(ReductionOf(type, numbers, op, ranks), parts[rank]);
    });
  }
}

// On entry a rank's whole list holds the rank's own numbers. Checks that on return every part holds the numbers of its
// owner, and that the values outside the parts are unchanged.
template <typename AllGather>
void CheckAllGathers(CaseList& list, DataType type, int rank, int ranks, const AllGather& all_gather) {
  for (const Parts& parts : PartsToTry(list.list().size(), ranks)) {
    const Pattern own = InputOf(type, Numbers::kWhole, rank);
    list.Fill(own);
    ASSERT_EQ(all_gather(parts), absl::OkStatus());
    uint64_t end = 0;
    for (int owner = 0; owner < ranks; ++owner) {
      list.Expect(own, {end, parts[owner].begin});
      list.Expect(InputOf(type, Numbers::kWhole, owner), parts[owner]);
      end = parts[owner].end;
    }
    list.Expect(own, {end, list.list().size()});
  }
}

template <typename Reduce>
void CheckReduces(CaseList& list, DataType type, int rank, int ranks, const Reduce& reduce) {
  for (int root : Roots(ranks)) {
    ForEachReduction(type, [&](ReduceOp op, Numbers numbers) {
      list.Fill(InputOf(type, numbers, rank));
      ASSERT_EQ(reduce(op, root), absl::OkStatus());
      if (rank == root) list.Expect(ReductionOf(type, numbers, op, ranks));
      list.ExpectUntouchedAround();
    });
  }
}

template <typename Broadcast>
void CheckBroadcasts(CaseList& list, DataType type, int rank, int ranks, const Broadcast& broadcast) {
  for (int root : Roots(ranks)) {
    list.Fill(InputOf(type, Numbers::kWhole, rank));
    ASSERT_EQ(broadcast(root), absl::OkStatus());
    list.Expect(InputOf(type, Numbers::kWhole, root));
  }
}

void CheckGroupAllReduces(CaseList& list, DataType type, Group& group) {
  CheckAllReduces(
      list, type, group.rank(), group.size(), [&](ReduceOp op) { return group.AllReduce(list.list(), op); },
      [&](const TensorList& hash) { return group.Broadcast(hash, 0); });
}

void CheckGroupIn(absl::Span<char> room, Group& group, const CollectiveCase& collective_case) {
  const int n = group.size();
  const int rank = group.rank();
  ForEachType(room, Values(collective_case.size, n), collective_case, [&](CaseList& list, DataType type) {
    const TensorList& values = list.list();
    CheckGroupAllReduces(list, type, group);
    CheckReduceScatters(list, type, rank, n, [&](absl::Span<const ValueRange> parts, ReduceOp op) {
      return group.ReduceScatter(values, parts, op);
    });
    CheckAllGathers(list, type, rank, n,
                    [&](absl::Span<const ValueRange> parts) { return group.AllGather(values, parts); });
    CheckReduces(list, type, rank, n, [&](ReduceOp op, int root) { return group.Reduce(values, op, root); });
    CheckBroadcasts(list, type, rank, n, [&](int root) { return group.Broadcast(values, root); });
    ASSERT_EQ(group.Barrier(), absl::OkStatus());
  });
}

// Calls check(room) with memory of the test, and then with the group's arena.
template <typename Check>
void InBothMemories(Group& group, const CollectiveCase& collective_case, const Check& check) {
  const uint64_t values = Values(collective_case.size, group.size());
  {
    SCOPED_TRACE("in the test's memory");
    std::vector<double> own = Room(values);
    check(absl::Span<char>(reinterpret_cast<char*>(own.data()), own.size() * sizeof(double)));
  }
  SCOPED_TRACE("in the group's arena");
  const absl::StatusOr<absl::Span<char>> arena = group.AllocateShared(CaseList::RoomBytes(values));
  ASSERT_EQ(arena.status(), absl::OkStatus());
  EXPECT_EQ(std::count(arena->begin(), arena->end(), 0), arena->size());
  check(*arena);
}

}  // namespace

std::vector<CollectiveCase> AllCollectiveCases() {
  std::vector<CollectiveCase> cases;
  for (SizeClass size : {SizeClass::kZero, SizeClass::kOne, SizeClass::kRanksMinusOne, SizeClass::kRanks,
                         SizeClass::kRanksPlusOne, SizeClass::kOdd, SizeClass::kLarge}) {
    for (bool pieces : {false, true}) cases.push_back({size, pieces});
  }
  return cases;
}

std::string NameOf(const CollectiveCase& collective_case) {
  static constexpr const char* kSizes[] = {"None", "One", "RanksMinusOne", "Ranks", "RanksPlusOne", "Odd", "Large"};
  return absl::StrCat(kSizes[static_cast<int>(collective_case.size)], collective_case.pieces ? "InPieces" : "");
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
      return 30011;
  }
  return 0;
}

void CheckAllReduce(Transport& transport, const AllReduceFunction& all_reduce, const CollectiveCase& collective_case) {
  CaseCall with(collective_case);
  ForEachTypeOn(transport, collective_case, [&](CaseList& list, DataType type) {
    CheckAllReduces(
        list, type, transport.rank(), transport.size(),
        [&](ReduceOp op) { return all_reduce(transport, list.list(), op, with.call); },
        [&](const TensorList& hash) { return BinomialBroadcast(transport, hash, 0, with.call); });
  });
}

void CheckReduceScatter(Transport& transport, const ReduceScatterFunction& reduce_scatter,
                        const CollectiveCase& collective_case) {
  CaseCall with(collective_case);
  ForEachTypeOn(transport, collective_case, [&](CaseList& list, DataType type) {
    CheckReduceScatters(list, type, transport.rank(), transport.size(),
                        [&](absl::Span<const ValueRange> parts, ReduceOp op) {
                          return reduce_scatter(transport, list.list(), parts, op, with.call);
                        });
  });
}

void CheckAllGather(Transport& transport, const AllGatherFunction& all_gather, const CollectiveCase& collective_case) {
  CaseCall with(collective_case);
  ForEachTypeOn(transport, collective_case, [&](CaseList& list, DataType type) {
    CheckAllGathers(list, type, transport.rank(), transport.size(), [&](absl::Span<const ValueRange> parts) {
      return all_gather(transport, list.list(), parts, with.call);
    });
  });
}

void CheckReduce(Transport& transport, const ReduceFunction& reduce, const CollectiveCase& collective_case) {
  CaseCall with(collective_case);
  ForEachTypeOn(transport, collective_case, [&](CaseList& list, DataType type) {
    CheckReduces(list, type, transport.rank(), transport.size(),
                 [&](ReduceOp op, int root) { return reduce(transport, list.list(), op, root, with.call); });
  });
}

void CheckBroadcast(Transport& transport, const BroadcastFunction& broadcast, const CollectiveCase& collective_case) {
  CaseCall with(collective_case);
  ForEachTypeOn(transport, collective_case, [&](CaseList& list, DataType type) {
    CheckBroadcasts(list, type, transport.rank(), transport.size(),
                    [&](int root) { return broadcast(transport, list.list(), root, with.call); });
  });
}

void CheckGroup(Group& group, const CollectiveCase& collective_case) {
  InBothMemories(group, collective_case, [&](absl::Span<char> room) { CheckGroupIn(room, group, collective_case); });
}

void CheckGroupAllReduce(Group& group, const CollectiveCase& collective_case) {
  InBothMemories(group, collective_case, [&](absl::Span<char> room) {
    ForEachType(room, Values(collective_case.size, group.size()), collective_case,
                [&](CaseList& list, DataType type) { CheckGroupAllReduces(list, type, group); });
  });
}

}  // namespace hooke
