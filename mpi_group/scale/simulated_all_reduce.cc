#include "mpi_group/scale/simulated_all_reduce.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/message_collectives.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/virtual_network.h"

namespace hooke {
namespace {

// A simulation that takes longer has a fault.
constexpr absl::Duration kLimit = absl::Minutes(10);
constexpr int kPeriodOfRanks = 7;
constexpr uint64_t kPeriodOfValues = 5;

using Transports = std::vector<std::unique_ptr<VirtualTransport>>;

float InputAt(int rank, uint64_t index) {
  return static_cast<float>(rank % kPeriodOfRanks + static_cast<int>(index % kPeriodOfValues));
}

// The sum of whole numbers, which is exact in float32 for up to 2^20 ranks.
float SumAt(int ranks, uint64_t index) {
  uint64_t sum = 0;
  for (int rank = 0; rank < kPeriodOfRanks; ++rank) {
    const int equal = ranks / kPeriodOfRanks + (rank < ranks % kPeriodOfRanks ? 1 : 0);
    sum += equal * static_cast<uint64_t>(rank);
  }
  return static_cast<float>(sum + ranks * (index % kPeriodOfValues));
}

void Fill(int rank, absl::Span<float> values) {
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = InputAt(rank, i);
}

absl::Status Check(int ranks, absl::Span<const float> values) {
  float wanted[kPeriodOfValues];
  for (uint64_t i = 0; i < kPeriodOfValues; ++i) wanted[i] = SumAt(ranks, i);
  for (uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] == wanted[i % kPeriodOfValues]) continue;
    return absl::InternalError(absl::StrCat("value ", i, " is ", values[i], ", not ", wanted[i % kPeriodOfValues]));
  }
  return absl::OkStatus();
}

// Returns the first error, which names its rank.
absl::Status FirstError(const std::vector<absl::Status>& of_rank) {
  const auto found =
      std::find_if(of_rank.begin(), of_rank.end(), [](const absl::Status& status) { return !status.ok(); });
  if (found == of_rank.end()) return absl::OkStatus();
  return {found->code(), absl::StrCat("simulated rank ", found - of_rank.begin(), ": ", found->message())};
}

// Returns the bytes of a simulated message that stands for `bytes` bytes. Each of its bytes stands for
// `bytes_per_byte`. Its number of values is rounded up, so the simulation has no more messages than a real all-reduce.
uint64_t ShrunkChunk(uint64_t bytes, uint64_t bytes_per_byte) {
  const uint64_t value_bytes = sizeof(float) * bytes_per_byte;
  return (bytes + value_bytes - 1) / value_bytes * sizeof(float);
}

uint64_t ChunkBytesFor(Algorithm algorithm, const ModelCall& call, uint64_t bytes_per_byte) {
  if (bytes_per_byte == 1) return call.chunk_bytes;
  if (algorithm != Algorithm::kRing) return ShrunkChunk(call.chunk_bytes, bytes_per_byte);
  // The ring's own rule would not make chunks as short as these, so it is applied to the bytes before the division.
  const uint64_t part = (call.bytes + call.ranks - 1) / call.ranks;
  return ShrunkChunk(RingChunkValues({part, 1, call.chunk_bytes, call.window}), bytes_per_byte);
}

Topology TopologyOf(const TwoLevelCase& one) {
  return {one.nodes * one.ranks_of_each, one.nodes, one.ranks_of_each, one.ranks_of_each, true, false};
}

Workload WorkloadOf(const TwoLevelCase& one) { return {Operation::kAllReduce, one.bytes, true, false}; }

// The groups of a case's ranks. After OK they have met, and their clocks are 0.
struct Groups {
  std::vector<VirtualTransport*> clocks;  // Owned by the groups.
  std::vector<std::unique_ptr<Group>> of_rank;
  std::vector<absl::Span<float>> values;
};

absl::StatusOr<Groups> MakeGroups(const TwoLevelCase& one, const LinkCost& link) {
  const int n = one.nodes * one.ranks_of_each;
  Groups groups;
  GroupOptions options;
  options.deadline = kLimit;
  options.tuning.between_nodes = Tuning::BetweenNodes::kMpi;  // Through the given transports.
  options.tuning.slot_bytes = 4096;                           // The least, as values in an arena take no slots.
  for (std::unique_ptr<VirtualTransport>& transport : MakeVirtualTransports(n, {link})) {
    options.node = absl::StrCat("node ", transport->rank() / one.ranks_of_each);
    groups.clocks.push_back(transport.get());
    groups.of_rank.push_back(MakeTransportGroup(std::move(transport), options));
  }
  groups.values.resize(n);
  std::vector<absl::Status> statuses(n);
  RunRanks(n, [&](int rank) {
    const absl::StatusOr<absl::Span<float>> values =
        AllocateSharedValues<float>(*groups.of_rank[rank], one.bytes / sizeof(float));
    statuses[rank] = values.status();
    if (!values.ok()) return;
    groups.values[rank] = *values;
    Fill(rank, *values);
  });
  if (absl::Status status = FirstError(statuses); !status.ok()) return status;
  for (VirtualTransport* clock : groups.clocks) clock->Restart();
  return groups;
}

}  // namespace

absl::StatusOr<double> SimulateAllReduce(Algorithm algorithm, const ModelCall& call, const LinkCost& link,
                                         uint64_t bytes_per_byte) {
  const Transports transports = MakeVirtualTransports(call.ranks, {link, static_cast<double>(bytes_per_byte)});
  const uint64_t values = std::max<uint64_t>(1, call.bytes / bytes_per_byte / sizeof(float));
  const uint64_t chunk_bytes = ChunkBytesFor(algorithm, call, bytes_per_byte);
  const absl::Time deadline = SteadyNow() + kLimit;
  std::vector<absl::Status> statuses(call.ranks);
  RunRanks(call.ranks, [&](int rank) {
    std::vector<float> own(values);
    Fill(rank, absl::MakeSpan(own));
    Scratch scratch;
    statuses[rank] = AllReduceBy(algorithm, *transports[rank], TensorList(absl::MakeSpan(own)), ReduceOp::kSum,
                                 {deadline, scratch, chunk_bytes, call.window});
    if (statuses[rank].ok()) statuses[rank] = Check(call.ranks, own);
  });
  if (absl::Status status = FirstError(statuses); !status.ok()) return status;
  double seconds = 0;
  for (const std::unique_ptr<VirtualTransport>& transport : transports) seconds = std::max(seconds, transport->now());
  return seconds;
}

Choice ChoiceBetweenNodes(const TwoLevelCase& one) {
  return ChooseBetweenNodes(TopologyOf(one), WorkloadOf(one), ChooseAlgorithm(TopologyOf(one), WorkloadOf(one)));
}

double TwoLevelSeconds(const TwoLevelCase& one, const LinkCost& link) {
  const int drivers = ChooseAlgorithm(TopologyOf(one), WorkloadOf(one)).drivers;
  const Choice between = ChoiceBetweenNodes(one);
  return AllReduceSeconds(between.algorithm, {one.nodes, one.bytes / drivers, between.chunk_bytes},
                          Shared(link, drivers));
}

absl::StatusOr<double> SimulateTwoLevel(const TwoLevelCase& one, const LinkCost& link) {
  const int drivers = ChooseAlgorithm(TopologyOf(one), WorkloadOf(one)).drivers;
  const absl::StatusOr<Groups> groups = MakeGroups(one, Shared(link, drivers));
  if (!groups.ok()) return groups.status();
  const auto n = static_cast<int>(groups->of_rank.size());
  std::vector<absl::Status> statuses(n);
  RunRanks(n, [&](int rank) {
    statuses[rank] = groups->of_rank[rank]->AllReduce(TensorList(groups->values[rank]), ReduceOp::kSum);
    if (statuses[rank].ok()) statuses[rank] = Check(n, groups->values[rank]);
  });
  if (absl::Status status = FirstError(statuses); !status.ok()) return status;
  double seconds = 0;
  for (const VirtualTransport* clock : groups->clocks) seconds = std::max(seconds, clock->now());
  return seconds;
}

}  // namespace hooke
