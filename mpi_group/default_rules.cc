#include "mpi_group/tuning.h"

namespace hooke {
namespace {

// Rules list their fields in the order of TuningRule: operation, where, values, ranks_max, oversubscribed, bytes_max,
// algorithm, chunk_bytes, drivers. Earlier rules win.

constexpr uint64_t kKi = 1024;
constexpr uint64_t kAny = TuningRule::kAnyBytes;
constexpr int kRanks = TuningRule::kAnyRanks;
using Where = TuningRule::Where;
using Values = TuningRule::Values;

// The rules for all-reduces of 16 to 256 KiB. If the number of ranks is no power of two, some ranks of halving-doubling
// send all their values to a neighbour and get the result back. With three ranks, messages with 3 times the values
// follow one another. In a ring these have 4/3 of the values, in as many steps. Between nodes, where bytes cost most,
// groups with such numbers of ranks take the ring (16-bit sums: pairwise, see collectives/ring.h). From 17 ranks on a
// model decides (choose_algorithm.cc). Ranks of one node that share no memory always take halving-doubling.
std::vector<TuningRule> MiddlingAllReduceRules() {
  constexpr Operation kOperation = Operation::kAllReduce;
  std::vector<TuningRule> rules;
  rules.reserve(7);
  for (int power = 2; power <= 8; power *= 2) {
    rules.push_back({kOperation, Where::kSeveralNodes, Values::kAny, power, false, 256 * kKi,
                     Algorithm::kHalvingDoubling, 64 * kKi});
    rules.push_back(
        {kOperation, Where::kSeveralNodes, Values::kAny, 2 * power - 1, false, 256 * kKi, Algorithm::kRing, 64 * kKi});
  }
  rules.push_back(
      {kOperation, Where::kAnywhere, Values::kAny, kRanks, false, 256 * kKi, Algorithm::kHalvingDoubling, 64 * kKi});
  return rules;
}

// The last rule of each operation fits every call of it.
std::vector<TuningRule> AllReduceRules() {
  constexpr Operation kOperation = Operation::kAllReduce;
  std::vector<TuningRule> rules = {
      {kOperation, Where::kOneNode, Values::kArena, kRanks, false, 4 * kKi, Algorithm::kStaged, 64 * kKi},
      {kOperation, Where::kOneNode, Values::kArena, kRanks, false, kAny, Algorithm::kArena, 64 * kKi},
      {kOperation, Where::kOneNode, Values::kPrivate, 2, false, kAny, Algorithm::kStaged, 256 * kKi},
      {kOperation, Where::kOneNode, Values::kPrivate, kRanks, false, 16 * kKi, Algorithm::kStaged, 64 * kKi},
      {kOperation, Where::kOneNode, Values::kPrivate, kRanks, false, kAny, Algorithm::kStagedSlices, 256 * kKi},
      {kOperation, Where::kSeveralNodes, Values::kAny, kRanks, false, 16 * kKi, Algorithm::kTwoLevel, 64 * kKi, 1},
      {kOperation, Where::kSeveralNodes, Values::kAny, kRanks, false, kAny, Algorithm::kTwoLevel, 256 * kKi},
      {kOperation, Where::kAnywhere, Values::kAny, kRanks, false, 16 * kKi, Algorithm::kRecursiveDoubling, 64 * kKi},
  };
  const std::vector<TuningRule> middling = MiddlingAllReduceRules();
  rules.insert(rules.end(), middling.begin(), middling.end());
  rules.push_back({kOperation, Where::kAnywhere, Values::kAny, kRanks, false, kAny, Algorithm::kRing, 256 * kKi});
  return rules;
}

// The rules of operations with a root: broadcast and reduce.
std::vector<TuningRule> RootedRules(Operation operation) {
  return {
      {operation, Where::kOneNode, Values::kArena, kRanks, false, 16 * kKi, Algorithm::kStaged, 64 * kKi},
      {operation, Where::kOneNode, Values::kArena, kRanks, false, kAny, Algorithm::kArena, 64 * kKi},
      {operation, Where::kOneNode, Values::kAny, kRanks, false, 256 * kKi, Algorithm::kStaged, 64 * kKi},
      {operation, Where::kOneNode, Values::kAny, kRanks, false, kAny, Algorithm::kStaged, 256 * kKi},
      {operation, Where::kSeveralNodes, Values::kAny, kRanks, false, kAny, Algorithm::kTwoLevel, 256 * kKi, 1},
      {operation, Where::kAnywhere, Values::kAny, kRanks, false, 64 * kKi, Algorithm::kBinomialTree, 64 * kKi},
      {operation, Where::kAnywhere, Values::kAny, kRanks, false, kAny, Algorithm::kChain, 128 * kKi},
  };
}

// The rules of operations on parts: reduce-scatter and all-gather. In a pairwise exchange each rank sends to each other
// rank. In groups of more than kAllPairsRanks ranks these would be very many messages of a few bytes. Two levels send
// fewer messages, and only between ranks that are connected by sockets.
std::vector<TuningRule> PartsRules(Operation operation) {
  return {
      {operation, Where::kOneNode, Values::kArena, kRanks, false, 16 * kKi, Algorithm::kStaged, 64 * kKi},
      {operation, Where::kOneNode, Values::kArena, kRanks, false, kAny, Algorithm::kArena, 64 * kKi},
      {operation, Where::kOneNode, Values::kAny, kRanks, false, kAny, Algorithm::kStaged, 256 * kKi},
      {operation, Where::kAnywhere, Values::kAny, kAllPairsRanks, false, 64 * kKi, Algorithm::kPairwise, 64 * kKi},
      {operation, Where::kSeveralNodes, Values::kAny, kRanks, false, kAny, Algorithm::kTwoLevel, 256 * kKi},
      {operation, Where::kAnywhere, Values::kAny, kRanks, false, 64 * kKi, Algorithm::kPairwise, 64 * kKi},
      {operation, Where::kAnywhere, Values::kAny, kRanks, false, kAny, Algorithm::kRing, 256 * kKi},
  };
}

std::vector<TuningRule> MakeDefaultRules() {
  std::vector<TuningRule> all = {
      {Operation::kBarrier, Where::kOneNode, Values::kAny, kRanks, false, kAny, Algorithm::kStaged, 64 * kKi},
      {Operation::kBarrier, Where::kSeveralNodes, Values::kAny, kRanks, false, kAny, Algorithm::kTwoLevel, 64 * kKi, 1},
      {Operation::kBarrier, Where::kAnywhere, Values::kAny, kRanks, false, kAny, Algorithm::kDissemination, 64 * kKi},
  };
  for (const std::vector<TuningRule>& rules :
       {AllReduceRules(), RootedRules(Operation::kBroadcast), RootedRules(Operation::kReduce),
        PartsRules(Operation::kReduceScatter), PartsRules(Operation::kAllGather)}) {
    all.insert(all.end(), rules.begin(), rules.end());
  }
  return all;
}

}  // namespace

const std::vector<TuningRule>& DefaultRules() {
  static const auto* const rules = new std::vector<TuningRule>(MakeDefaultRules());
  return *rules;
}

}  // namespace hooke
