#include "mpi_group/groups/group_nodes.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/on_all_ranks.h"
#include "mpi_group/collectives/texts.h"
#include "mpi_group/links/choose_carrier.h"
#include "mpi_group/node/node_collectives.h"
#include "mpi_group/sockets/host_addresses.h"
#include "mpi_group/sockets/socket_mesh.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/sub_transport.h"

namespace hooke {
namespace {

// Each rank sends this record to the other ranks of its node, once, when the group starts.
struct Introduction {
  cpu_set_t cores;  // The cores on which the rank may run.
  ProcessIdentity process;
};
static_assert(sizeof(Introduction) <= 4096, "the smallest slot takes one");

}  // namespace

GroupNodes::GroupNodes(Transport& transport, Nodes nodes) : transport_(transport), nodes_(std::move(nodes)) {
  topology_.ranks = transport_.size();
  topology_.nodes = static_cast<int>(nodes_.ranks_of_node.size());
  topology_.smallest_node = topology_.ranks;
  for (const std::vector<int>& ranks : nodes_.ranks_of_node) {
    topology_.smallest_node = std::min(topology_.smallest_node, static_cast<int>(ranks.size()));
    topology_.largest_node = std::max(topology_.largest_node, static_cast<int>(ranks.size()));
  }
  Divide();
}

absl::StatusOr<std::unique_ptr<GroupNodes>> GroupNodes::Gather(Transport& transport, const GroupOptions& options,
                                                               std::vector<char>& memory, absl::Time deadline) {
  absl::StatusOr<Nodes> nodes = GatherNodes(transport, options.node.empty() ? NodeIdentity() : options.node, deadline);
  if (!nodes.ok()) return nodes.status();
  const absl::StatusOr<std::string> text = ShareText(transport, FormatTuning(options.tuning), deadline);
  if (!text.ok()) return text.status();
  const absl::StatusOr<Tuning> shared_tuning = ParseTuning(*text);
  if (!shared_tuning.ok()) return shared_tuning.status();
  std::unique_ptr<GroupNodes> group(new GroupNodes(transport, *std::move(nodes)));
  group->tuning_ = *shared_tuning;
  // In a large group shared memory comes first, because it decides which ranks will send to each other between nodes.
  // In a small one connections come first, because they show at once if a rank dies.
  const bool large = group->topology_.ranks > kAllPairsRanks;
  absl::Status status = large ? absl::OkStatus() : group->ConnectNodes(options, memory, deadline);
  if (status.ok()) status = group->SetUpMeeting(deadline);
  if (status.ok() && large) status = group->ConnectNodes(options, memory, deadline);
  if (!status.ok()) return status;
  if (group->sockets_ != nullptr && group->enough_cores_) group->sockets_->SetPatience(SocketPatienceFor(true));
  return group;
}

void GroupNodes::Divide() {
  local_ = MakeSubTransport(transport(), LocalRanks());
  if (topology_.nodes == 1 || local_->rank() >= topology_.smallest_node) return;
  std::vector<int> drivers;
  for (const std::vector<int>& ranks : nodes_.ranks_of_node) drivers.push_back(ranks[local_->rank()]);
  drivers_ = MakeSubTransport(transport(), std::move(drivers));
}

absl::Status GroupNodes::ConnectNodes(const GroupOptions& options, std::vector<char>& memory, absl::Time deadline) {
  if (topology_.nodes == 1 || tuning_.between_nodes == Tuning::BetweenNodes::kMpi) return absl::OkStatus();
  MeshOptions mesh_options;
  mesh_options.identity = NodeIdentity();
  mesh_options.addresses = ChosenOf(OwnAddresses(), options.addresses);
  mesh_options.chosen = !options.addresses.empty();
  const bool two_level = topology_.shared_memory && topology_.largest_node > 1;
  absl::StatusOr<Mesh> mesh =
      ConnectMesh(transport_, nodes_, CircleOf(transport_.rank(), nodes_, two_level), mesh_options, deadline);
  if (!mesh.ok()) return mesh.status();
  why_no_sockets_ = mesh->why_not;
  if (!why_no_sockets_.empty()) return absl::OkStatus();
  sockets_ = MakeSocketTransport(transport_, std::move(mesh->connections));
  if (tuning_.between_nodes == Tuning::BetweenNodes::kAuto) {
    absl::Status status = ChooseCarrier(options.rdma_devices, memory, deadline);
    if (!status.ok()) return status;
  }
  Divide();
  return absl::OkStatus();
}

absl::Status GroupNodes::ChooseCarrier(const std::string& rdma_devices, std::vector<char>& memory,
                                       absl::Time deadline) {
  const absl::StatusOr<bool> none = OnAllRanks(transport_, !HasRdmaDevice(rdma_devices), deadline);
  if (!none.ok() || *none) return none.status();
  std::string why_mpi;
  std::vector<int> firsts;
  for (const std::vector<int>& ranks : nodes_.ranks_of_node) firsts.push_back(ranks.front());
  if (local_->rank() == 0) {
    const std::unique_ptr<Transport> by_mpi = MakeSubTransport(transport_, firsts);
    const std::unique_ptr<Transport> by_sockets = MakeSubTransport(*sockets_, firsts);
    absl::StatusOr<std::string> why = MeasureCarriers(*by_mpi, *by_sockets, memory, deadline);
    if (!why.ok()) return why.status();
    why_mpi = *std::move(why);
    memory = std::vector<char>();
  }
  absl::StatusOr<std::string> decision = ShareText(transport_, why_mpi, deadline);
  if (!decision.ok()) return decision.status();
  why_no_sockets_ = *std::move(decision);
  if (!why_no_sockets_.empty()) sockets_ = nullptr;
  return absl::OkStatus();
}

int GroupNodes::LocalLeaderFor(int root) const {
  const int place = LocalRank(root);
  return static_cast<size_t>(place) < LocalRanks().size() ? place : 0;
}

Transport* GroupNodes::LeadersFor(int root) {
  if (LocalLeaderFor(root) != local_->rank()) return nullptr;
  const int place = LocalRank(root);
  std::unique_ptr<Transport>& found = leaders_[place];
  if (found != nullptr) return found.get();
  std::vector<int> leaders;
  for (const std::vector<int>& ranks : nodes_.ranks_of_node) {
    leaders.push_back(static_cast<size_t>(place) < ranks.size() ? ranks[place] : ranks.front());
  }
  found = MakeSubTransport(transport(), std::move(leaders));
  return found.get();
}

absl::StatusOr<std::unique_ptr<SharedMemory>> GroupNodes::ShareMemory(uint64_t bytes, absl::Time deadline,
                                                                      std::string* why) {
  absl::StatusOr<std::unique_ptr<SharedMemory>> memory = SharedMemory::Create(*local_, bytes, deadline);
  const absl::Status& status = memory.status();
  if (!status.ok() && !absl::IsFailedPrecondition(status) && !absl::IsResourceExhausted(status)) return status;
  const absl::StatusOr<bool> all = OnAllRanks(transport(), status.ok(), deadline);
  if (!all.ok()) return all.status();
  if (*all) return memory;
  *why = status.ok() ? "another node of the group has none" : std::string(status.message());
  return std::unique_ptr<SharedMemory>();
}

absl::Status GroupNodes::SetUpMeeting(absl::Time deadline) {
  if (topology_.ranks == 1) return absl::OkStatus();
  const StagingSizes staging = StagingFor(tuning_.slot_bytes, local_->size());
  absl::StatusOr<std::unique_ptr<SharedMemory>> memory =
      ShareMemory(NodeMeeting::RegionBytes(staging.slot_bytes, staging.extra_bytes), deadline, &why_not_shared_);
  if (!memory.ok() || *memory == nullptr) return memory.status();
  memory_ = *std::move(memory);
  NodeMeeting::Options options;
  options.rank = local_->rank();
  options.ranks = local_->size();
  options.base = memory_->base();
  options.bytes_per_rank = memory_->bytes_per_rank();
  options.slot_bytes = staging.slot_bytes;
  options.extra_bytes = staging.extra_bytes;
  options.numbers = LocalRanks();
  options.interrupted = [this] { return transport().CheckNotices(); };
  options.has_ended = [this](int peer) {
    if (!peers_.HasEnded(peer)) return false;
    transport().HearLost(LocalRanks()[peer]);
    return true;
  };
  meeting_ = std::make_unique<NodeMeeting>(options);
  const absl::StatusOr<int> cores = Introduce(deadline - SteadyNow());
  if (!cores.ok()) return cores.status();
  enough_cores_ = local_->size() <= *cores;
  meeting_->SetPatience(PatienceFor(enough_cores_));
  const absl::StatusOr<bool> enough_everywhere = OnAllRanks(transport(), enough_cores_, deadline);
  if (!enough_everywhere.ok()) return enough_everywhere.status();
  topology_.shared_memory = true;
  topology_.oversubscribed = !*enough_everywhere;
  return absl::OkStatus();
}

absl::StatusOr<int> GroupNodes::Introduce(absl::Duration limit) {
  Introduction own;
  CPU_ZERO(&own.cores);
  if (sched_getaffinity(0, sizeof(own.cores), &own.cores) != 0) CPU_SET(0, &own.cores);
  own.process = OwnProcess();
  std::memcpy(meeting_->NextSlot(), &own, sizeof(own));
  meeting_->Begin(limit);
  absl::Status status = meeting_->Meet();
  if (!status.ok()) return status;
  for (int peer = 0; peer < meeting_->ranks(); ++peer) {
    Introduction other;
    std::memcpy(&other, meeting_->Slot(peer), sizeof(other));
    CPU_OR(&own.cores, &own.cores, &other.cores);
    peers_.Add(other.process);
  }
  return CPU_COUNT(&own.cores);
}

absl::StatusOr<std::unique_ptr<GroupNodes::ArenaInMemory>> GroupNodes::NewArena(uint64_t bytes, uint64_t number,
                                                                                absl::Time deadline, std::string* why) {
  absl::StatusOr<std::unique_ptr<SharedMemory>> memory = ShareMemory(std::max<uint64_t>(bytes, 1), deadline, why);
  if (!memory.ok()) return memory.status();
  if (*memory == nullptr) return std::unique_ptr<ArenaInMemory>();
  auto made = std::make_unique<ArenaInMemory>();
  made->memory = *std::move(memory);
  made->arena = std::make_unique<SharedArena>(SharedArena::Layout{local_->rank(), local_->size(), made->memory->base(),
                                                                  made->memory->bytes_per_rank(), bytes, number});
  return made;
}

}  // namespace hooke
