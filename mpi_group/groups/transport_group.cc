#include "mpi_group/groups/transport_group.h"

#include <spdlog/logger.h>

#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/call.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/collectives/all_gather.h"
#include "mpi_group/collectives/barrier.h"
#include "mpi_group/collectives/message_collectives.h"
#include "mpi_group/groups/group_nodes.h"
#include "mpi_group/links/measure_links.h"
#include "mpi_group/node/node_collectives.h"
#include "mpi_group/transport/call_label.h"
#include "mpi_group/transport/recent_calls.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/two_level/two_level.h"

namespace hooke {
namespace {

// The unit of ordinary memory, which gives it the alignment of an arena.
struct alignas(64) Line {
  char bytes[64] = {};
};

// Allocates zeroed memory; null if there is not enough.
std::unique_ptr<Line[]> NewLines(uint64_t lines) {
  if (lines > std::numeric_limits<ptrdiff_t>::max() / sizeof(Line)) return nullptr;
  return std::unique_ptr<Line[]>(new (std::nothrow) Line[lines]);
}

// The arguments of a collective, besides the values.
struct Request {
  Operation operation = Operation::kBarrier;
  std::optional<ReduceOp> op;
  int root = -1;
  absl::Span<const ValueRange> parts;
};

bool RoundsOnce(const Request& request, DataType type) {
  return SizeOf(type) == 2 && (request.op == ReduceOp::kSum || request.op == ReduceOp::kMean);
}

CallLabel LabelOf(const Request& request, const TensorList& values, bool shared) {
  return {
      0,     NameOf(request.operation), values.size(), values.type(), request.op, request.root, HashOf(request.parts),
      shared};
}

// Two-level collectives copy values in an arena to slots up to this size. On one node the default rules decide that.
constexpr uint64_t kCopiedBytesMax = 16384;

class TransportGroup : public Group {
 public:
  TransportGroup(std::unique_ptr<Transport> transport, const GroupOptions& options, NewTransport another)
      : options_(options), transport_(std::move(transport)), another_(std::move(another)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    return Run({Operation::kAllReduce, op, -1, {}}, values, [&](const Plan& plan) {
      const Reduction reduction = {values.type(), op, size()};
      switch (plan.choice.algorithm) {
        case Algorithm::kStaged:
          return StagedAllReduce(NodeCallFor(plan), values, reduction);
        case Algorithm::kStagedSlices:
          return StagedSlicesAllReduce(NodeCallFor(plan), values, reduction);
        case Algorithm::kArena:
          return ArenaAllReduce(NodeCallFor(plan), *plan.arena, values, reduction);
        case Algorithm::kTwoLevel:
          return TwoLevelAllReduce(TwoLevelCallFor(plan, DriversFor(plan)), values, op, plan.choice.drivers);
        default:
          return AllReduceBy(plan.choice.algorithm, transport(), values, op, CallFor(plan));
      }
    });
  }

  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    return Run({Operation::kReduce, op, root, {}}, values, [&](const Plan& plan) {
      const Reduction reduction = {values.type(), op, size()};
      switch (plan.choice.algorithm) {
        case Algorithm::kStaged:
          return StagedReduce(NodeCallFor(plan), values, reduction, root);
        case Algorithm::kArena:
          return ArenaReduce(NodeCallFor(plan), *plan.arena, values, reduction, root);
        case Algorithm::kTwoLevel:
          return TwoLevelReduce(TwoLevelCallFor(plan, nodes_->LeadersFor(root)), values, op,
                                nodes_->LocalLeaderFor(root), nodes_->NodeOf(root));
        default:
          return ReduceBy(plan.choice.algorithm, transport(), values, op, root, CallFor(plan));
      }
    });
  }

  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    return Run({Operation::kReduceScatter, op, -1, parts}, values, [&](const Plan& plan) {
      const Reduction reduction = {values.type(), op, size()};
      switch (plan.choice.algorithm) {
        case Algorithm::kStaged:
          return StagedReduceScatter(NodeCallFor(plan), values, parts, reduction);
        case Algorithm::kArena:
          return ArenaReduceScatter(NodeCallFor(plan), *plan.arena, values, parts, reduction);
        case Algorithm::kTwoLevel:
          return TwoLevelReduceScatter(TwoLevelCallFor(plan, DriversFor(plan)), values,
                                       {parts, nodes_->nodes(), nodes_->node()}, op, plan.choice.drivers);
        default:
          return ReduceScatterBy(plan.choice.algorithm, transport(), values, parts, op, CallFor(plan));
      }
    });
  }

  absl::Status Broadcast(const TensorList& values, int root) override {
    return Run({Operation::kBroadcast, std::nullopt, root, {}}, values, [&](const Plan& plan) {
      switch (plan.choice.algorithm) {
        case Algorithm::kStaged:
          return StagedBroadcast(NodeCallFor(plan), values, root);
        case Algorithm::kArena:
          return ArenaBroadcast(NodeCallFor(plan), *plan.arena, values, root);
        case Algorithm::kTwoLevel:
          return TwoLevelBroadcast(TwoLevelCallFor(plan, nodes_->LeadersFor(root)), values,
                                   nodes_->LocalLeaderFor(root), nodes_->NodeOf(root));
        default:
          return BroadcastBy(plan.choice.algorithm, transport(), values, root, CallFor(plan));
      }
    });
  }

  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    return Run({Operation::kAllGather, std::nullopt, -1, parts}, values, [&](const Plan& plan) {
      switch (plan.choice.algorithm) {
        case Algorithm::kStaged:
          return StagedAllGather(NodeCallFor(plan), values, parts);
        case Algorithm::kArena:
          return ArenaAllGather(NodeCallFor(plan), *plan.arena, values, parts);
        case Algorithm::kTwoLevel:
          return TwoLevelAllGather(TwoLevelCallFor(plan, DriversFor(plan)), values,
                                   {parts, nodes_->nodes(), nodes_->node()}, plan.choice.drivers);
        default:
          return AllGatherBy(plan.choice.algorithm, transport(), values, parts, CallFor(plan));
      }
    });
  }

  absl::Status Barrier() override {
    return Run({}, TensorList(), [&](const Plan& plan) {
      if (plan.choice.algorithm == Algorithm::kStaged) return nodes_->meeting()->Meet(plan.purpose);
      if (plan.choice.algorithm == Algorithm::kTwoLevel)
        return TwoLevelBarrier(TwoLevelCallFor(plan, DriversFor(plan)));
      return DisseminationBarrier(transport(), CallFor(plan).deadline);
    });
  }

  void SetDeadline(absl::Duration deadline) override { options_.deadline = deadline; }

  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override {
    if (!failure_.ok()) return failure_;
    const std::string what = absl::StrCat("allocation of ", bytes, " shared bytes");
    CallLabel allocation;
    allocation.operation = "shared allocation";
    allocation.values = bytes;
    calls_.Add(allocation);
    if (size() > 1) {
      const absl::Time now = SteadyNow();
      calls_.Tell(transport(), now);
      absl::Status status = MeetOthers(now);
      std::string why;
      absl::StatusOr<std::unique_ptr<GroupNodes::ArenaInMemory>> arena = std::unique_ptr<GroupNodes::ArenaInMemory>();
      if (status.ok()) arena = nodes_->NewArena(bytes, NextArena(), now + options_.deadline, &why);
      status.Update(arena.status());
      if (!status.ok()) return Fail(status, what);
      if (*arena != nullptr) {
        arenas_.push_back(*std::move(arena));
        return arenas_.back()->arena->ValuesOf(rank_in_node());
      }
      Warn(absl::StrCat("shared memory of ", bytes, " bytes"), why);
    }
    if (bytes == 0) return absl::Span<char>();
    std::unique_ptr<Line[]> memory = NewLines((bytes - 1) / sizeof(Line) + 1);
    if (memory == nullptr) {
      return Fail(absl::ResourceExhaustedError("so much memory cannot be had; ask for less, or use more ranks"), what);
    }
    private_.push_back(std::move(memory));
    return absl::Span<char>(private_.back()[0].bytes, bytes);
  }

  absl::StatusOr<std::unique_ptr<Group>> Clone() override {
    if (!failure_.ok()) return failure_;
    if (another_ == nullptr) return Group::Clone();
    absl::StatusOr<std::unique_ptr<Transport>> transport = another_(SteadyNow() + options_.deadline);
    // All ranks return here and nothing was sent, so the group remains usable.
    if (absl::IsFailedPrecondition(transport.status())) return transport.status();
    if (!transport.ok()) return Fail(transport.status(), "another group of the same ranks");
    GroupOptions options = options_;
    // Sockets that could not be connected before are not tried again, as that would only cost the time again.
    if (nodes_ != nullptr && !nodes_->why_no_sockets().empty())
      options.tuning.between_nodes = Tuning::BetweenNodes::kMpi;
    options.on_links = nullptr;
    auto clone = std::make_unique<TransportGroup>(*std::move(transport), options, another_);
    clone->lent_ = lent_;
    for (const std::unique_ptr<GroupNodes::ArenaInMemory>& own : arenas_) clone->lent_.push_back(own->arena.get());
    return clone;
  }

  absl::string_view LastAlgorithm() const override { return NameOf(last_choice_.algorithm); }

 private:
  struct Plan {
    Choice choice;
    Choice between;  // Between the nodes; kNothing unless `choice` is two-level.
    Purpose purpose;
    const SharedArena* arena = nullptr;
    Workload workload;
    absl::Time deadline;  // Only algorithms that send messages use it.
  };

  template <typename Collective>
  absl::Status Run(const Request& request, const TensorList& values, const Collective& collective) {
    if (!failure_.ok()) return failure_;
    const SharedArena* const arena = values.empty() ? nullptr : ArenaOf(values);
    calls_.Add(LabelOf(request, values, arena != nullptr));
    absl::Status status = CheckRequest(request, values);
    if (status.ok() && nodes_ == nullptr) status = MeetOthers(SteadyNow());
    if (status.ok()) {
      const Plan plan = MakePlan(request, values, arena);
      if (plan.choice.algorithm == Algorithm::kNothing) return status;
      status = collective(plan);
    }
    if (status.ok()) return status;
    return Fail(status, absl::StrCat(NameOf(request.operation), " of ", values.size(), " values"));
  }

  Plan MakePlan(const Request& request, const TensorList& values, const SharedArena* arena) {
    Plan plan;
    plan.arena = arena;
    plan.workload = {request.operation, values.bytes(), plan.arena != nullptr, RoundsOnce(request, values.type())};
    // Calls often repeat, so the last choices are kept.
    if (!last_workload_.has_value() || !(*last_workload_ == plan.workload)) {
      last_choice_ = ChooseAlgorithm(nodes_->topology(), plan.workload, nodes_->tuning());
      last_between_ = Choice();
      if (last_choice_.algorithm == Algorithm::kTwoLevel) {
        last_between_ = ChooseBetweenNodes(nodes_->topology(), plan.workload, last_choice_, nodes_->tuning());
      }
      last_workload_ = plan.workload;
    }
    plan.choice = last_choice_;
    plan.between = last_between_;
    // Ranks must agree on the chunk size too, because it decides how many meetings there are.
    plan.purpose = {values.size(),
                    Mix(HashOf(request.parts), plan.choice.chunk_bytes),
                    request.root,
                    static_cast<uint8_t>(request.operation),
                    values.type(),
                    request.op.value_or(ReduceOp::kSum),
                    static_cast<uint8_t>(plan.choice.algorithm)};
    if (arena != nullptr) plan.purpose.places ^= arena->Places(values);
    if (nodes_->meeting() != nullptr) nodes_->meeting()->Begin(options_.deadline);
    if (ByMessages(plan.choice.algorithm)) {
      const absl::Time now = SteadyNow();
      calls_.Tell(transport(), now);
      plan.deadline = now + options_.deadline;
    }
    return plan;
  }

  static bool ByMessages(Algorithm algorithm) {
    return algorithm != Algorithm::kNothing && algorithm != Algorithm::kArena && algorithm != Algorithm::kStaged &&
           algorithm != Algorithm::kStagedSlices;
  }

  NodeCall NodeCallFor(const Plan& plan) { return {*nodes_->meeting(), plan.purpose, plan.choice.chunk_bytes}; }

  Call CallFor(const Plan& plan) { return {plan.deadline, scratch_, plan.choice.chunk_bytes}; }

  TwoLevelCall TwoLevelCallFor(const Plan& plan, Transport* between) {
    Call call = CallFor(plan);
    call.chunk_bytes = plan.between.chunk_bytes;
    // Ranks that work in an arena meet once more than those that copy to their slots, which takes longer than copying
    // few bytes.
    const SharedArena* const arena = plan.workload.bytes > kCopiedBytesMax ? plan.arena : nullptr;
    return {NodeCallFor(plan), arena, between, plan.between.algorithm, call, size()};
  }

  // Null if this rank is no driver (two_level.h).
  Transport* DriversFor(const Plan& plan) { return rank_in_node() < plan.choice.drivers ? nodes_->drivers() : nullptr; }

  Transport& transport() { return nodes_ != nullptr ? nodes_->transport() : *transport_; }

  int rank_in_node() const { return nodes_->LocalRank(rank()); }

  // Sets up `nodes_` at the first call.
  absl::Status MeetOthers(absl::Time now) {
    if (nodes_ != nullptr) return absl::OkStatus();
    calls_.Tell(*transport_, now);
    absl::StatusOr<std::unique_ptr<GroupNodes>> nodes =
        GroupNodes::Gather(*transport_, options_, links_memory_, now + options_.deadline);
    if (!nodes.ok()) return nodes.status();
    nodes_ = *std::move(nodes);
    if (!nodes_->why_not_shared().empty()) Warn("memory that a node's ranks share", nodes_->why_not_shared());
    if (!nodes_->why_no_sockets().empty() && options_.logger != nullptr) {
      options_.logger->warn("messages between nodes go through MPI, not sockets: {}", nodes_->why_no_sockets());
    }
    return options_.on_links == nullptr ? absl::OkStatus() : TellLinks(now + options_.deadline);
  }

  absl::Status TellLinks(absl::Time deadline) {
    Transport* const first_of_nodes = nodes_->topology().nodes > 1 ? nodes_->LeadersFor(0) : nullptr;
    if (first_of_nodes == nullptr) return absl::OkStatus();
    absl::StatusOr<std::vector<LinkFigures>> links = MeasureLinks(*first_of_nodes, links_memory_, deadline);
    if (!links.ok()) return links.status();
    links_memory_ = std::vector<char>();
    for (LinkFigures& link : *links) link.peer = nodes_->nodes().ranks_of_node[link.peer].front();
    options_.on_links(*links);
    return absl::OkStatus();
  }

  void Warn(const std::string& what, const std::string& why) {
    if (options_.logger == nullptr) return;
    options_.logger->warn("{} is not available, ranks use memory of their own: {}", what, why);
  }

  // Checks the arguments that can be wrong on this rank only. The caller must report the error to the other ranks,
  // which would otherwise wait for this one.
  absl::Status CheckRequest(const Request& request, const TensorList& values) const {
    switch (request.operation) {
      case Operation::kReduce:
      case Operation::kBroadcast:
        return CheckRoot(request.root, size());
      case Operation::kReduceScatter:
      case Operation::kAllGather:
        return CheckParts(request.parts, size(), values.size());
      default:
        return absl::OkStatus();
    }
  }

  // The number of the next arena. In a clone, the arenas of the original groups keep their numbers, and the clone's own
  // arenas get the next ones.
  uint64_t NextArena() const { return lent_.size() + arenas_.size(); }

  const SharedArena* ArenaOf(const TensorList& values) const {
    for (const std::unique_ptr<GroupNodes::ArenaInMemory>& shared : arenas_) {
      if (shared->arena->Contains(values)) return shared->arena.get();
    }
    for (const SharedArena* lent : lent_) {
      if (lent->Contains(values)) return lent;
    }
    return nullptr;
  }

  // Settles the failure with the other ranks. From now on every call returns the resulting error.
  absl::Status Fail(const absl::Status& failure, absl::string_view what) {
    const bool waited =
        nodes_ != nullptr && nodes_->meeting() != nullptr && nodes_->meeting()->waiting_since() != absl::InfinitePast();
    const absl::Time begun = waited ? nodes_->meeting()->waiting_since() : SteadyNow();
    failure_ = calls_.Settle(transport(), failure, {what, begun, options_.deadline});
    return failure_;
  }

  GroupOptions options_;
  // These two outlive the transport, whose unfinished messages use their memory.
  Scratch scratch_;
  std::vector<char> links_memory_;
  const std::unique_ptr<Transport> transport_;
  const NewTransport another_;
  std::unique_ptr<GroupNodes> nodes_;  // Set by the first call.
  std::vector<std::unique_ptr<GroupNodes::ArenaInMemory>> arenas_;
  std::vector<const SharedArena*> lent_;  // Arenas of the groups from which this one was cloned.
  std::vector<std::unique_ptr<Line[]>> private_;
  RecentCalls calls_;
  std::optional<Workload> last_workload_;
  Choice last_choice_;
  Choice last_between_;  // Plan::between of the last choice.
  absl::Status failure_;
};

}  // namespace

std::unique_ptr<Group> MakeTransportGroup(std::unique_ptr<Transport> transport, const GroupOptions& options,
                                          NewTransport another) {
  return std::make_unique<TransportGroup>(std::move(transport), options, std::move(another));
}

}  // namespace hooke
