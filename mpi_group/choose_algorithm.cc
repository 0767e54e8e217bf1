#include "mpi_group/choose_algorithm.h"

#include <algorithm>

#include "mpi_group/time_model.h"

namespace hooke {
namespace {

// The built-in rules were measured on 2 to 8 hosts. They decide on all-reduces by messages between nodes if at most
// this many ranks take part. For more ranks the model decides.
constexpr int kRanksOfRules = 16;

// The network for which the model decides. Only two ratios matter: the bytes that a link carries during the latency
// (25 KB), and those that it carries during the overhead of one message (5 KB). They are similar for Ethernet of
// 10 Gbit/s over TCP, and for faster networks with RDMA.
constexpr LinkCost kUsualLink = {20e-6, 4e-6, 0.8e-9};

// The ring is taken if its time is at most this many times the shortest. The model leaves out what speaks for a ring:
// every rank talks to one neighbour only, and in two levels the work inside a node goes on at the same time.
constexpr double kRingMargin = 1.15;

// True if the ranks' topology and the place of the values allow the algorithm at all.
bool Possible(Algorithm algorithm, const Topology& topology, const Workload& workload) {
  switch (algorithm) {
    case Algorithm::kArena:
      return topology.nodes == 1 && workload.shared;
    case Algorithm::kStaged:
    case Algorithm::kStagedSlices:
      return topology.nodes == 1 && topology.shared_memory;
    case Algorithm::kTwoLevel:
      if (topology.nodes == 1 || topology.largest_node == 1 || !topology.shared_memory) return false;
      // Sums that are rounded once travel between nodes as float32, twice the bytes. That pays off only where every
      // node has several ranks, which would otherwise send 16 bits each. Of the two-level operations only the
      // all-reduce makes such sums.
      return !workload.rounds_once || (topology.smallest_node > 1 && workload.operation == Operation::kAllReduce);
    default:
      return true;
  }
}

bool Fits(const TuningRule& rule, const Topology& topology, const Workload& workload) {
  if (rule.operation != workload.operation || workload.bytes > rule.bytes_max) return false;
  if (topology.ranks > rule.ranks_max || (rule.oversubscribed && !topology.oversubscribed)) return false;
  if (rule.where == TuningRule::Where::kOneNode && topology.nodes > 1) return false;
  if (rule.where == TuningRule::Where::kSeveralNodes && topology.nodes == 1) return false;
  if (rule.values == TuningRule::Values::kArena && !workload.shared) return false;
  if (rule.values == TuningRule::Values::kPrivate && workload.shared) return false;
  return Possible(rule.algorithm, topology, workload);
}

absl::string_view ReasonFor(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kNothing:
      return "nothing to do";
    case Algorithm::kReference:
      return "tiny: the number of messages in a row decides";
    case Algorithm::kRing:
      return "every rank sends the least bytes possible, to one neighbour";
    case Algorithm::kPairwise:
      return "the least bytes possible, in a single step";
    case Algorithm::kRecursiveDoubling:
      return "few values: the fewest steps";
    case Algorithm::kHalvingDoubling:
      return "the least bytes possible in few steps";
    case Algorithm::kBinomialTree:
      return "few values: the fewest levels";
    case Algorithm::kChain:
      return "many values: no rank sends them twice";
    case Algorithm::kChainBinomial:
      return "many ranks: short chains under a tree";
    case Algorithm::kChainChain:
      return "many ranks and values: short chains under a chain";
    case Algorithm::kDissemination:
      return "fewest steps for a barrier";
    case Algorithm::kArena:
      return "values in a shared arena: in place, no copy, no messages";
    case Algorithm::kStaged:
      return "one node: through shared memory, one meeting per chunk";
    case Algorithm::kStagedSlices:
      return "one node, several ranks: each reduces its slice in shared memory";
    case Algorithm::kTwoLevel:
      return "several ranks per node: each byte crosses a link once";
  }
  return "unknown algorithm";
}

Choice ChoiceOf(const TuningRule& rule, const Topology& topology) {
  Choice choice = {rule.algorithm, rule.chunk_bytes, 0, ReasonFor(rule.algorithm)};
  if (rule.algorithm == Algorithm::kTwoLevel) {
    choice.drivers = rule.drivers == 0 ? topology.smallest_node : std::min(rule.drivers, topology.smallest_node);
  }
  return choice;
}

// True if the model decides in place of this built-in rule. It does so for an all-reduce by messages among more than
// kRanksOfRules ranks on several nodes. These ranks may be the i-th drivers of all nodes.
bool ModelDecides(const TuningRule& rule, const Topology& topology) {
  return rule.operation == Operation::kAllReduce && rule.algorithm != Algorithm::kTwoLevel && topology.nodes > 1 &&
         topology.ranks > kRanksOfRules;
}

Choice ChooseByModel(const Topology& topology, const Workload& workload, const LinkCost& link) {
  ModelCall call = {topology.ranks, workload.bytes};
  constexpr uint64_t kKi = 1024;
  call.chunk_bytes = (workload.bytes <= 256 * kKi ? 64 : 256) * kKi;
  // If a ring is chosen for sums that are rounded once, it runs pairwise, and the values travel in 16 bits. With the
  // other algorithms the sums travel as float32.
  ModelCall sums = call;
  if (workload.rounds_once) sums.bytes *= 2;
  const double ring = AllReduceSeconds(workload.rounds_once ? Algorithm::kPairwise : Algorithm::kRing, call, link);
  const double halving = AllReduceSeconds(Algorithm::kHalvingDoubling, sums, link);
  const double doubling = AllReduceSeconds(Algorithm::kRecursiveDoubling, sums, link);
  const double best = std::min(halving, doubling);
  if (ring <= kRingMargin * best) {
    return {Algorithm::kRing, call.chunk_bytes, 0, "many ranks, and parts long enough for messages to one neighbour"};
  }
  if (doubling <= halving) {
    return {Algorithm::kRecursiveDoubling, call.chunk_bytes, 0, "many ranks, few values: the fewest steps"};
  }
  return {Algorithm::kHalvingDoubling, call.chunk_bytes, 0,
          "many ranks: few steps, as a ring's messages would be short"};
}

// The choice by the rules and the model, for ranks whose messages cost `link`.
Choice ChooseByRules(const Topology& topology, const Workload& workload, const Tuning& tuning, const LinkCost& link) {
  if (topology.ranks == 1) return {Algorithm::kNothing, 0, 0, "a single rank has it all"};
  if (workload.bytes == 0 && workload.operation != Operation::kBarrier) {
    return {Algorithm::kNothing, 0, 0, "no values"};
  }
  for (const TuningRule& rule : tuning.rules) {
    if (Fits(rule, topology, workload)) return ChoiceOf(rule, topology);
  }
  for (const TuningRule& rule : DefaultRules()) {
    if (!Fits(rule, topology, workload)) continue;
    return ModelDecides(rule, topology) ? ChooseByModel(topology, workload, link) : ChoiceOf(rule, topology);
  }
  // Not reached: the last default rule of each operation fits everything.
  return {Algorithm::kReference, 0, 0, "no rule fits"};
}

// As ChooseAlgorithm, for ranks whose messages cost `link`.
Choice ChooseFor(const Topology& topology, const Workload& workload, const Tuning& tuning, const LinkCost& link) {
  Choice choice = ChooseByRules(topology, workload, tuning, link);
  // collectives/ring.h runs such sums pairwise, so the choice says so.
  if (choice.algorithm == Algorithm::kRing && workload.rounds_once && topology.ranks > 2) {
    choice.algorithm = Algorithm::kPairwise;
    choice.reason = "as many bytes as a ring, which would round a 16-bit sum at every rank";
  }
  return choice;
}

// Returns the choice for `workload` and, if it is two-level, the one between the nodes. Leaves out the range of sizes.
ExplainedChoice ExplainSize(const Topology& topology, const Tuning& tuning, const Workload& workload) {
  ExplainedChoice explained;
  explained.operation = workload.operation;
  explained.shared = workload.shared;
  explained.rounds_once = workload.rounds_once;
  explained.choice = ChooseAlgorithm(topology, workload, tuning);
  if (explained.choice.algorithm == Algorithm::kTwoLevel) {
    explained.between = ChooseBetweenNodes(topology, workload, explained.choice, tuning);
  }
  return explained;
}

bool SameWays(const ExplainedChoice& a, const ExplainedChoice& b) {
  return SameWay(a.choice, b.choice) && SameWay(a.between, b.between);
}

// Returns the choices for `workload` at every size; `workload.bytes` is ignored. Only powers of two are tried. So a
// rule's bound that is no power of two shows as the one below it.
std::vector<ExplainedChoice> ChoicesBySize(const Topology& topology, const Tuning& tuning, Workload workload) {
  constexpr uint64_t kLargest = uint64_t{1} << 30;
  std::vector<ExplainedChoice> choices;
  uint64_t from = 4;
  for (uint64_t bytes = from; bytes <= kLargest; bytes *= 2) {
    workload.bytes = bytes;
    ExplainedChoice here = ExplainSize(topology, tuning, workload);
    workload.bytes = bytes * 2;
    const bool last = bytes == kLargest;
    if (!last && SameWays(ExplainSize(topology, tuning, workload), here)) continue;
    here.bytes_from = from;
    here.bytes_to = last ? TuningRule::kAnyBytes : bytes;
    choices.push_back(here);
    from = bytes * 2;
  }
  return choices;
}

bool SameChoices(const std::vector<ExplainedChoice>& a, const std::vector<ExplainedChoice>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ExplainedChoice& one, const ExplainedChoice& two) {
    return one.bytes_to == two.bytes_to && SameWays(one, two);
  });
}

}  // namespace

bool SameWay(const Choice& a, const Choice& b) {
  return a.algorithm == b.algorithm && a.chunk_bytes == b.chunk_bytes && a.drivers == b.drivers;
}

Topology OneNode(int ranks) { return {ranks, 1, ranks, ranks, true, false}; }

Choice ChooseAlgorithm(const Topology& topology, const Workload& workload, const Tuning& tuning) {
  return ChooseFor(topology, workload, tuning, kUsualLink);
}

Choice ChooseBetweenNodes(const Topology& topology, const Workload& workload, const Choice& choice,
                          const Tuning& tuning) {
  Topology between;
  between.ranks = between.nodes = topology.nodes;
  Workload of_driver = workload;
  of_driver.bytes = std::max<uint64_t>(1, workload.bytes / std::max(1, choice.drivers));
  // Sums that are rounded once travel as float32, in twice the bytes.
  if (workload.rounds_once) of_driver.bytes *= 2;
  of_driver.rounds_once = false;
  return ChooseFor(between, of_driver, tuning, Shared(kUsualLink, choice.drivers));
}

std::vector<ExplainedChoice> ListChoices(const Topology& topology, const Tuning& tuning) {
  std::vector<ExplainedChoice> choices;
  for (Operation operation : kAllOperations) {
    for (bool shared : {true, false}) {
      if (operation == Operation::kBarrier && shared) continue;
      const std::vector<ExplainedChoice> most = ChoicesBySize(topology, tuning, {operation, 0, shared});
      choices.insert(choices.end(), most.begin(), most.end());
      if (!Reduces(operation)) continue;
      const std::vector<ExplainedChoice> sums = ChoicesBySize(topology, tuning, {operation, 0, shared, true});
      if (!SameChoices(sums, most)) choices.insert(choices.end(), sums.begin(), sums.end());
    }
  }
  return choices;
}

}  // namespace hooke
