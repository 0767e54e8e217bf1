#include "worker/bench/plan.h"

#include <algorithm>

namespace hooke {
namespace {

constexpr uint64_t kKi = 1024;
constexpr uint64_t kReferenceBytesMax = 64 * kKi;
constexpr uint64_t kCopiedArenaBytesMax = 1024 * kKi;

constexpr Operation kMeasured[] = {Operation::kAllReduce, Operation::kBroadcast, Operation::kReduce,
                                   Operation::kReduceScatter, Operation::kAllGather};

Tuning Forcing(Algorithm algorithm, uint64_t chunk_bytes, int drivers) {
  Tuning tuning;
  for (Operation operation : kAllOperations) {
    if (!Does(algorithm, operation)) continue;
    TuningRule rule;
    rule.operation = operation;
    rule.algorithm = algorithm;
    rule.chunk_bytes = chunk_bytes;
    rule.drivers = drivers;
    tuning.rules.push_back(rule);
  }
  return tuning;
}

std::vector<Tuning> MakeWays() {
  std::vector<Tuning> ways = {Tuning()};
  for (uint64_t chunk_bytes : {64 * kKi, 256 * kKi}) {
    for (Algorithm algorithm :
         {Algorithm::kStaged, Algorithm::kStagedSlices, Algorithm::kRing, Algorithm::kHalvingDoubling,
          Algorithm::kChain, Algorithm::kChainBinomial, Algorithm::kChainChain, Algorithm::kPairwise}) {
      ways.push_back(Forcing(algorithm, chunk_bytes, 0));
    }
  }
  for (Algorithm algorithm :
       {Algorithm::kArena, Algorithm::kRecursiveDoubling, Algorithm::kBinomialTree, Algorithm::kReference}) {
    ways.push_back(Forcing(algorithm, 64 * kKi, 0));
  }
  ways.push_back(Forcing(Algorithm::kTwoLevel, 64 * kKi, 1));
  ways.push_back(Forcing(Algorithm::kTwoLevel, 256 * kKi, 1));
  ways.push_back(Forcing(Algorithm::kTwoLevel, 256 * kKi, 0));
  return ways;
}

bool Hopeless(const PlannedCell& cell, Algorithm algorithm) {
  if (algorithm == Algorithm::kReference && cell.bytes > kReferenceBytesMax) return true;
  if (!cell.shared || algorithm == Algorithm::kArena || algorithm == Algorithm::kTwoLevel) return false;
  const bool staged = algorithm == Algorithm::kStaged || algorithm == Algorithm::kStagedSlices;
  return !staged || cell.bytes > kCopiedArenaBytesMax;
}

PlannedCell CellFor(const Topology& topology, Operation operation, bool shared, uint64_t bytes) {
  PlannedCell cell = {operation, shared, bytes, {}};
  for (size_t way = 0; way < Ways().size(); ++way) {
    const Tuning& tuning = Ways()[way];
    const Choice choice = ChooseAlgorithm(topology, {operation, bytes, shared}, tuning);
    // If the values fit into one chunk, choices that differ only in the chunk size are the same.
    const auto same = [&choice, bytes](const Candidate& other) {
      return SameWay(other.choice, choice) ||
             (other.choice.algorithm == choice.algorithm && other.choice.drivers == choice.drivers &&
              other.choice.chunk_bytes >= bytes && choice.chunk_bytes >= bytes);
    };
    // A tuning whose algorithm is not possible here gives the default again.
    if (std::any_of(cell.candidates.begin(), cell.candidates.end(), same)) continue;
    if (way > 0 && Hopeless(cell, choice.algorithm)) continue;
    cell.candidates.push_back({way, choice});
  }
  return cell;
}

}  // namespace

const std::vector<Tuning>& Ways() {
  static const auto* const ways = new std::vector<Tuning>(MakeWays());
  return *ways;
}

std::vector<PlannedCell> PlanCells(const Topology& topology, uint64_t bytes_max) {
  std::vector<PlannedCell> cells;
  for (Operation operation : kMeasured) {
    for (uint64_t bytes = 4; bytes <= bytes_max; bytes *= 4) {
      for (bool shared : {true, false}) {
        if (topology.ranks == 1 || (shared && !topology.shared_memory)) continue;
        cells.push_back(CellFor(topology, operation, shared, bytes));
      }
    }
  }
  return cells;
}

}  // namespace hooke
