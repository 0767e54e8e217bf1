#include "worker/training/group_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi_group/call.h"

namespace hooke {
namespace {

using Phase = v1::RankProgress;

// Returns the deadline of collectives in an issue order. It is longer than the group's own deadline, so that the
// group's error comes first. That error names ranks.
absl::Duration OrderDeadline(absl::Duration collective_timeout) { return collective_timeout * 3 / 2; }

GroupStepOptions Effective(GroupStepOptions options, int ranks) {
  if (ranks == 1) {  // There is no communication to hide.
    options.overlap = false;
    options.kind = AggregationKind::kAllReduce;
  }
  if (!options.overlap) {
    options.order = IssuePolicy::kChained;  // The chained order runs in the caller's own thread.
    options.bucket_bytes = UINT64_MAX;
  }
  return options;
}

// Combines the gradients of one bucket. With sharded, a bucket of parameters is cut into the same parts as the bucket
// of its gradients.
absl::Status CombineGradients(AggregationKind kind, Group& group, const TensorList& bucket) {
  switch (kind) {
    case AggregationKind::kAllReduce:
      return group.AllReduce(bucket, ReduceOp::kMean);
    case AggregationKind::kRooted:
      return group.Reduce(bucket, ReduceOp::kMean, 0);
    case AggregationKind::kSharded:
      return group.ReduceScatter(bucket, EvenParts(bucket.size(), group.size()), ReduceOp::kMean);
  }
  return absl::InternalError("no such aggregation");
}

absl::Status DistributeParameters(AggregationKind kind, Group& group, const TensorList& bucket) {
  if (kind == AggregationKind::kRooted) return group.Broadcast(bucket, 0);
  return group.AllGather(bucket, EvenParts(bucket.size(), group.size()));
}

}  // namespace

GroupStep::Plan GroupStep::MakePlan(const ModelLayout& layout, uint64_t bucket_bytes) {
  std::vector<uint64_t> values;
  values.reserve(layout.parameters.size());
  for (const NamedShape& parameter : layout.parameters) values.push_back(parameter.values());
  Plan plan;
  plan.buckets = PlanBuckets(values, std::max<uint64_t>(bucket_bytes / sizeof(float), 1));
  // Without parameters there is still a bucket, for the loss.
  if (plan.buckets.empty()) plan.buckets.emplace_back();
  plan.bucket_of.resize(values.size());
  for (size_t b = 0; b < plan.buckets.size(); ++b) {
    const Bucket& bucket = plan.buckets[b];
    std::fill_n(plan.bucket_of.begin() + static_cast<ptrdiff_t>(bucket.first_parameter), bucket.parameters, b);
  }
  return plan;
}

GroupStep::Plan GroupStep::MakeTypedPlan(absl::Span<const TypedGradient> gradients, uint64_t bucket_bytes) {
  Plan plan;
  plan.typed = PlanTypedBuckets(gradients, bucket_bytes);
  plan.bucket_of.resize(gradients.size());
  for (size_t b = 0; b < plan.typed.size(); ++b) {
    const std::vector<size_t>& parameters = plan.typed[b].parameters;
    plan.buckets.push_back({parameters.empty() ? 0 : parameters.back(), parameters.size(), {}});
    for (size_t parameter : parameters) plan.bucket_of[parameter] = b;
  }
  return plan;
}

absl::StatusOr<std::unique_ptr<GroupStep>> GroupStep::Make(const Dependencies& deps, const GroupStepOptions& options) {
  const GroupStepOptions effective = Effective(options, deps.group->size());
  std::unique_ptr<GroupStep> step(new GroupStep(deps, effective,
                                                deps.gradients.empty()
                                                    ? MakePlan(*deps.layout, effective.bucket_bytes)
                                                    : MakeTypedPlan(deps.gradients, effective.bucket_bytes)));
  if (absl::Status status = step->MakeOptimizers(); !status.ok()) return status;
  if (absl::Status status = step->OpenLanes(); !status.ok()) return status;
  if (absl::Status status = step->MakeOrders(); !status.ok()) return status;
  return step;
}

GroupStep::GroupStep(const Dependencies& deps, const GroupStepOptions& options, Plan plan)
    : deps_(deps),
      options_(options),
      plan_(std::move(plan)),
      missing_(plan_.buckets.size()),
      arrived_(plan_.buckets.size()) {}

GroupStep::~GroupStep() = default;

absl::Status GroupStep::MakeOptimizers() {
  if (!deps_.optimizer.has_value()) return absl::OkStatus();
  for (const ValueRange& values : SteppedHere()) {
    absl::StatusOr<std::unique_ptr<Optimizer>> optimizer = MakeOptimizer(*deps_.optimizer, values.size());
    if (!optimizer.ok()) return optimizer.status();
    stepped_.push_back({values, *std::move(optimizer)});
  }
  return absl::OkStatus();
}

std::vector<ValueRange> GroupStep::SteppedHere() const {
  const auto rank = static_cast<size_t>(deps_.group->rank());
  if (options_.kind == AggregationKind::kRooted && rank != 0) return {};
  if (options_.kind != AggregationKind::kSharded) return {{0, deps_.arena->parameters().size()}};
  std::vector<ValueRange> own;
  own.reserve(plan_.buckets.size());
  const std::vector<TensorList> gradients = GradientLists();
  for (size_t b = 0; b < plan_.buckets.size(); ++b) {
    // The last bucket also has the buffers and the loss, behind its parameters.
    const ValueRange& bucket = plan_.buckets[b].values;
    const ValueRange part = EvenParts(gradients[b].size(), deps_.group->size())[rank];
    own.push_back(
        {bucket.begin + std::min(part.begin, bucket.size()), bucket.begin + std::min(part.end, bucket.size())});
  }
  return own;
}

absl::Status GroupStep::OpenLanes() {
  if (options_.order != IssuePolicy::kConcurrent) return absl::OkStatus();
  for (int lane = 1; lane < options_.lanes; ++lane) {
    absl::StatusOr<std::unique_ptr<Group>> clone = deps_.group->Clone();
    if (!clone.ok()) return clone.status();
    clones_.push_back(*std::move(clone));
  }
  return absl::OkStatus();
}

absl::Status GroupStep::MakeOrders() {
  IssueOrderOptions order;
  order.policy = options_.order;
  order.deadline = OrderDeadline(deps_.collective_timeout);
  order.lanes.push_back(deps_.group);
  for (const std::unique_ptr<Group>& clone : clones_) order.lanes.push_back(clone.get());
  order.buckets = GradientLists();
  order.collective = [kind = options_.kind](Group& group, const TensorList& bucket) {
    return CombineGradients(kind, group, bucket);
  };
  absl::StatusOr<std::unique_ptr<IssueOrder>> gradients = MakeIssueOrder(order);
  if (!gradients.ok()) return gradients.status();
  gradients_ = *std::move(gradients);
  if (options_.kind == AggregationKind::kAllReduce) return absl::OkStatus();
  order.buckets = ParameterLists();
  order.collective = [kind = options_.kind](Group& group, const TensorList& bucket) {
    return DistributeParameters(kind, group, bucket);
  };
  absl::StatusOr<std::unique_ptr<IssueOrder>> parameters = MakeIssueOrder(order);
  if (!parameters.ok()) return parameters.status();
  parameters_ = *std::move(parameters);
  return absl::OkStatus();
}

std::vector<TensorList> GroupStep::GradientLists() const {
  const Arena& arena = *deps_.arena;
  std::vector<TensorList> lists;
  lists.reserve(plan_.buckets.size());
  for (size_t b = 0; b + 1 < plan_.typed.size(); ++b) lists.push_back(ListOf(deps_.gradients, plan_.typed[b]));
  if (!plan_.typed.empty()) {
    std::vector<absl::Span<char>> last;
    const TensorList gradients = ListOf(deps_.gradients, plan_.typed.back());
    last.assign(gradients.pieces().begin(), gradients.pieces().end());
    last.push_back(MutableBytesOf(arena.buffers()));
    last.push_back(MutableBytesOf(arena.statistics()));
    lists.emplace_back(DataType::kFloat32, last);
    return lists;
  }
  for (const Bucket& bucket : plan_.buckets) {
    const absl::Span<float> own = arena.gradients().subspan(bucket.values.begin, bucket.values.size());
    const bool last = &bucket == &plan_.buckets.back();
    lists.push_back(last ? TensorList({own, arena.buffers(), arena.statistics()}) : TensorList(own));
  }
  return lists;
}

// Returns the buckets of parameters in the reverse order of the gradients. The next forward pass needs the first layers
// first. The buffers and the loss are in the same bucket as these.
std::vector<TensorList> GroupStep::ParameterLists() const {
  const Arena& arena = *deps_.arena;
  std::vector<TensorList> lists;
  lists.reserve(plan_.buckets.size());
  for (size_t b = plan_.buckets.size(); b-- > 0;) {
    const ValueRange& values = plan_.buckets[b].values;
    const absl::Span<float> own = arena.parameters().subspan(values.begin, values.size());
    lists.push_back(lists.empty() ? TensorList({own, arena.buffers(), arena.statistics()}) : TensorList(own));
  }
  return lists;
}

BatchHooks GroupStep::Hooks() {
  BatchHooks hooks;
  if (!options_.overlap) return hooks;
  hooks.before_use = [this](size_t parameter) { BeforeUse(parameter); };
  hooks.gradient_ready = [this](size_t parameter) { GradientReady(parameter); };
  return hooks;
}

void GroupStep::Begin() {
  for (size_t b = 0; b < missing_.size(); ++b) missing_[b] = plan_.buckets[b].parameters;
  deps_.reporter->Enter(Phase::COMPUTE);
}

absl::StatusOr<float> GroupStep::Finish(float loss, double learning_rate) {
  const Arena& arena = *deps_.arena;
  arena.statistics()[0] = loss;

  deps_.reporter->Enter(Phase::COLLECTIVE);
  if (absl::Status status = AwaitParameters(); !status.ok()) return status;
  last_.clear();
  for (size_t b = 0; b < plan_.buckets.size(); ++b) {
    // The last bucket is completed only after the batch, because it holds the loss. In other buckets, gradients on
    // which the loss does not depend may be missing.
    if (missing_[b] > 0 || b + 1 == plan_.buckets.size()) last_.push_back(b);
  }
  if (absl::Status status = gradients_->FinishWith(last_); !status.ok()) return status;

  deps_.reporter->Enter(Phase::COMPUTE);
  for (const Stepped& own : stepped_) {
    own.optimizer->Step(learning_rate, arena.gradients().subspan(own.values.begin, own.values.size()),
                        arena.parameters().subspan(own.values.begin, own.values.size()));
  }
  if (parameters_ != nullptr) {
    if (absl::Status status = Distribute(); !status.ok()) return status;
  }
  ReportOverlap();
  return arena.statistics()[0];
}

void GroupStep::GradientReady(size_t parameter) {
  if (!options_.overlap) return;
  if (distributing_)
    // Backward has begun, so forward has used every layer and all parameters must have arrived. failure_ keeps an
    // error.
    AwaitParameters().IgnoreError();
  const size_t bucket = plan_.bucket_of[parameter];
  const bool last = bucket + 1 == plan_.buckets.size();
  if (--missing_[bucket] == 0 && !last && failure_.ok()) MakeReady(*gradients_, bucket);
}

// Gives a complete bucket to the issue order. With the chained order the rank waits for the other ranks here, so the
// time counts as collective.
void GroupStep::MakeReady(IssueOrder& order, size_t bucket) {
  if (options_.order != IssuePolicy::kChained) return order.Ready(bucket);
  deps_.reporter->Enter(Phase::COLLECTIVE);
  order.Ready(bucket);
  deps_.reporter->Enter(Phase::COMPUTE);
}

absl::Status GroupStep::Distribute() {
  if (plan_.buckets.size() == 1) {  // With one bucket there is nothing to overlap.
    deps_.reporter->Enter(Phase::COLLECTIVE);
    failure_ = parameters_->FinishWith({0});
    deps_.reporter->Enter(Phase::COMPUTE);
    return failure_;
  }
  distributing_ = true;
  std::fill(arrived_.begin(), arrived_.end(), false);
  for (size_t bucket = 0; bucket < plan_.buckets.size(); ++bucket) MakeReady(*parameters_, bucket);
  // Waits for the first bucket. It has the loss, which all ranks must know. It also has the buffers, which a forward
  // pass changes.
  return WaitForParameters(0);
}

void GroupStep::BeforeUse(size_t parameter) {
  if (distributing_) WaitForParameters(plan_.buckets.size() - 1 - plan_.bucket_of[parameter]).IgnoreError();
}

absl::Status GroupStep::WaitForParameters(size_t bucket) {
  if (arrived_[bucket] || !failure_.ok()) return failure_;
  deps_.reporter->Enter(Phase::COLLECTIVE);
  failure_ = parameters_->Wait(bucket);
  arrived_[bucket] = true;
  deps_.reporter->Enter(Phase::COMPUTE);
  return failure_;
}

void GroupStep::ReportOverlap() {
  if (!options_.overlap) return;
  absl::Duration overlapped;
  for (const IssueOrder* order : {gradients_.get(), parameters_.get()}) {
    if (order == nullptr) continue;
    const IssueTimes times = order->times();
    overlapped += std::max(times.busy - times.waited, absl::ZeroDuration());
  }
  if (overlapped <= overlapped_) return;
  deps_.reporter->AddOverlapped(overlapped - overlapped_);
  overlapped_ = overlapped;
}

// Returns, for each optimizer, its number of steps and the number of its values, both as uint64, and then the values.
std::string GroupStep::SaveOptimizers() const {
  std::string bytes;
  for (const Stepped& own : stepped_) {
    const Optimizer::State state = own.optimizer->Save();
    const uint64_t numbers[] = {state.steps, state.values.size()};
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof(numbers));
    bytes.append(reinterpret_cast<const char*>(state.values.data()), state.values.size() * sizeof(float));
  }
  return bytes;
}

absl::Status GroupStep::RestoreOptimizers(absl::string_view state) {
  const auto other = [] { return absl::DataLossError("a kept state is of other optimizers than this group has"); };
  for (const Stepped& own : stepped_) {
    uint64_t numbers[2];
    if (state.size() < sizeof(numbers)) return other();
    std::memcpy(numbers, state.data(), sizeof(numbers));
    state.remove_prefix(sizeof(numbers));
    if (numbers[1] > state.size() / sizeof(float)) return other();
    Optimizer::State restored = {numbers[0], std::vector<float>(numbers[1])};
    if (numbers[1] > 0) std::memcpy(restored.values.data(), state.data(), numbers[1] * sizeof(float));
    state.remove_prefix(numbers[1] * sizeof(float));
    if (!own.optimizer->Restore(std::move(restored)).ok()) return other();
  }
  return state.empty() ? absl::OkStatus() : other();
}

absl::Status GroupStep::AwaitParameters() {
  if (!distributing_ || !failure_.ok()) return failure_;
  failure_ = parameters_->Finish();
  distributing_ = false;
  return failure_;
}

}  // namespace hooke
