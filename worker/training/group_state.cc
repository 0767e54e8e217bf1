#include "worker/training/group_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "mpi_group/call.h"
#include "mpi_group/tensor_list.h"
#include "worker/exchange/agreement.h"

namespace hooke {
namespace {

// The time from one state to the next is at least this many times what sending a state takes. So sending states takes
// about 2 % of the time at most.
constexpr int kTimesOfCost = 50;

// After several states in a row that not all ranks have kept, the time to the next one doubles at most so many times.
constexpr uint32_t kDoublingsMost = 4;

// Servers keep two states of a rank. They hold more only if old ones could not be removed.
constexpr size_t kMostStates = 4;

// A state is stale if the center is too many steps ahead of it. The limit is kStaleGaps times the steps from one state
// to the next, but at least kStaleSteps. If only one state was ever kept, the limit is kStaleStepsAlone.
constexpr uint64_t kStaleGaps = 3;
constexpr uint64_t kStaleSteps = 1000;
constexpr uint64_t kStaleStepsAlone = 10000;

constexpr absl::Duration kBetweenTries = absl::Milliseconds(200);

// Returns whether the server may answer the next time.
bool MayPass(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

// Indices of the statistics.
constexpr size_t kWanted = 0;
constexpr size_t kFailed = 1;
constexpr size_t kCost = 2;  // The rank's cost of a state, in seconds.

bool Same(const v1::StateId& a, const v1::StateId& b) {
  return a.incarnation() == b.incarnation() && a.step() == b.step();
}

bool Has(const std::vector<v1::StateId>& ids, const v1::StateId& id) {
  return std::any_of(ids.begin(), ids.end(), [&id](const v1::StateId& each) { return Same(each, id); });
}

void PutPart(std::string* to, absl::string_view bytes) {
  const uint64_t size = bytes.size();
  to->append(reinterpret_cast<const char*>(&size), sizeof(size));
  absl::StrAppend(to, bytes);
}

absl::StatusOr<absl::string_view> TakePart(absl::string_view* from) {
  uint64_t size = 0;
  if (from->size() < sizeof(size)) return absl::DataLossError("a kept state ends too early");
  std::memcpy(&size, from->data(), sizeof(size));
  from->remove_prefix(sizeof(size));
  if (size > from->size()) return absl::DataLossError("a part of a kept state is longer than the state");
  const absl::string_view part = from->substr(0, size);
  from->remove_prefix(size);
  return part;
}

}  // namespace

std::string EncodeState(const KeptState& state) {
  std::string bytes;
  const absl::string_view values(reinterpret_cast<const char*>(state.values.data()),
                                 state.values.size() * sizeof(float));
  bytes.reserve(values.size() + state.optimizer.size() + state.own.size() + 3 * sizeof(uint64_t));
  for (const absl::string_view part : {values, absl::string_view(state.optimizer), absl::string_view(state.own)}) {
    PutPart(&bytes, part);
  }
  return bytes;
}

absl::StatusOr<KeptState> DecodeState(absl::string_view bytes) {
  KeptState state;
  absl::StatusOr<absl::string_view> part = TakePart(&bytes);
  if (!part.ok()) return part.status();
  if (part->size() % sizeof(float) != 0) return absl::DataLossError("the values of a kept state have a part of one");
  state.values.resize(part->size() / sizeof(float));
  if (!part->empty()) std::memcpy(state.values.data(), part->data(), part->size());
  for (std::string* const to : {&state.optimizer, &state.own}) {
    part = TakePart(&bytes);
    if (!part.ok()) return part.status();
    *to = std::string(*part);
  }
  if (!bytes.empty()) return absl::DataLossError("a kept state has bytes behind its last part");
  return state;
}

GroupState::GroupState(GroupStateOptions options, Group* group, const std::vector<ServerCalls*>& servers,
                       Reporter* reporter)
    : options_(std::move(options)),
      group_(group),
      servers_(servers),
      reporter_(reporter),
      last_time_(options_.clock()) {}

ServerCalls& GroupState::Server() const {
  const uint64_t ranks = static_cast<uint64_t>(group_->size());
  return *servers_[(options_.sender.group() * ranks + static_cast<uint64_t>(group_->rank())) % servers_.size()];
}

void GroupState::Notice(absl::string_view what, const absl::Status& why) {
  reporter_->Notice(absl::StrCat("the state of group ", options_.sender.group(), " rank ", group_->rank(), " ", what,
                                 ": ", why.message()));
}

// Returns the states that the servers keep for this rank. A server that does not answer may have a state, so that is an
// error and not an empty list.
absl::StatusOr<std::vector<v1::StateId>> GroupState::ListOwn() {
  v1::FetchStateRequest request;
  *request.mutable_sender() = options_.sender;
  const absl::Time deadline = SteadyTime() + options_.timeout;
  absl::StatusOr<FetchedState> fetched = Server().FetchState(request, deadline);
  while (!fetched.ok() && MayPass(fetched.status()) && SteadyTime() + kBetweenTries < deadline) {
    absl::SleepFor(kBetweenTries);
    fetched = Server().FetchState(request, deadline);
  }
  if (!fetched.ok()) {
    // NOT_FOUND: the server has started anew since this start of the group attached. The next start attaches again.
    const absl::StatusCode code = fetched.status().code();
    return absl::Status(code == absl::StatusCode::kNotFound ? absl::StatusCode::kUnavailable : code,
                        absl::StrCat("the group's own state cannot be looked for: ", fetched.status().message()));
  }
  if (!options_.takes_earlier) {
    fetched->states.erase(
        std::remove_if(fetched->states.begin(), fetched->states.end(),
                       [this](const v1::StateId& id) { return id.incarnation() < options_.first_incarnation; }),
        fetched->states.end());
  }
  fetched->states.resize(std::min(fetched->states.size(), kMostStates));
  return fetched->states;
}

// Returns the newest state of rank 0 that all ranks have. For this, each rank tells all others its states.
absl::StatusOr<std::optional<v1::StateId>> GroupState::FindCommon(const std::vector<v1::StateId>& own) {
  const auto ranks = static_cast<size_t>(group_->size());
  std::vector<uint64_t> numbers(ranks * kMostStates * 2);
  uint64_t* const mine = numbers.data() + static_cast<size_t>(group_->rank()) * kMostStates * 2;
  for (size_t i = 0; i < own.size(); ++i) {
    mine[2 * i] = own[i].incarnation();
    mine[2 * i + 1] = own[i].step();
  }
  if (absl::Status status = SumNumbers(*group_, absl::MakeSpan(numbers)); !status.ok()) return status;
  std::vector<std::vector<v1::StateId>> all(ranks);
  for (size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] == 0) continue;
    v1::StateId& id = all[i / 2 / kMostStates].emplace_back();
    id.set_incarnation(static_cast<uint32_t>(numbers[i]));
    id.set_step(numbers[i + 1]);
  }
  for (size_t i = 0; i < all[0].size(); ++i) {
    const v1::StateId& id = all[0][i];
    if (!std::all_of(all.begin(), all.end(), [&id](const auto& ids) { return Has(ids, id); })) continue;
    const uint64_t before = i + 1 < all[0].size() ? all[0][i + 1].step() : id.step();
    gap_ = id.step() - std::min(before, id.step());
    return id;
  }
  return std::optional<v1::StateId>();
}

// Fetches a state. It must have `values` values; if that is nullopt, their number does not matter, as the caller
// ignores them.
absl::Status GroupState::Fetch(const v1::StateId& id, std::optional<uint64_t> values) {
  v1::FetchStateRequest request;
  *request.mutable_sender() = options_.sender;
  *request.mutable_state() = id;
  const absl::StatusOr<FetchedState> fetched = Server().FetchState(request, SteadyTime() + options_.timeout);
  if (!fetched.ok()) return fetched.status();
  absl::StatusOr<KeptState> state = DecodeState(fetched->state);
  if (!state.ok()) return state.status();
  if (values.has_value() && state->values.size() != *values) {
    return absl::DataLossError(absl::StrCat("it has ", state->values.size(), " values instead of ", *values));
  }
  restored_ = *std::move(state);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<uint64_t>> GroupState::Restore(absl::Span<float> vector, uint64_t center_step) {
  const Parts parts = EvenParts(vector.size(), group_->size());
  const ValueRange& part = parts[static_cast<size_t>(group_->rank())];
  absl::StatusOr<std::vector<v1::StateId>> own = ListOwn();
  if (!own.ok()) return own.status();
  while (true) {
    const absl::StatusOr<std::optional<v1::StateId>> common = FindCommon(*own);
    if (!common.ok()) return common.status();
    if (!common->has_value()) return std::optional<uint64_t>();
    const v1::StateId id = **common;
    earlier_ = id.incarnation() < options_.first_incarnation;
    const bool takes_values = options_.with_values && (!earlier_ || options_.takes_earlier_values);
    std::optional<uint64_t> values = options_.with_values ? part.size() : 0;
    if (earlier_ && !takes_values) values.reset();
    const absl::Status fetched = Fetch(id, values);
    if (MayPass(fetched)) return fetched;
    if (!fetched.ok()) Notice(absl::StrCat("at step ", id.step(), " cannot be read"), fetched);
    uint64_t failures = fetched.ok() ? 0 : 1;
    if (absl::Status status = SumNumbers(*group_, absl::MakeSpan(&failures, 1)); !status.ok()) return status;
    if (failures > 0) {
      // All ranks then try the next older state.
      own->erase(std::remove_if(own->begin(), own->end(), [&id](const auto& each) { return Same(each, id); }),
                 own->end());
      restored_.reset();
      continue;
    }
    complete_ = id;
    const uint64_t limit = gap_ > 0 ? std::max(kStaleSteps, kStaleGaps * gap_) : kStaleStepsAlone;
    stale_ = takes_values && !earlier_ && center_step > id.step() + limit;
    if (takes_values && !stale_) {
      std::copy(restored_->values.begin(), restored_->values.end(), vector.begin() + part.begin);
      if (absl::Status status = group_->AllGather(TensorList(vector), parts); !status.ok()) return status;
    }
    restored_->values = {};
    return std::optional<uint64_t>(id.step());
  }
}

void GroupState::Propose(absl::Span<float> statistics) const {
  // Until all ranks have a state, a restart would not go on exactly, so the cost does not delay the next one.
  absl::Duration pause = options_.interval;
  if (complete_.has_value()) pause = std::max(pause, kTimesOfCost * cost_);
  // Each try stops training for up to the timeout, so a server that stays away is asked less and less often.
  if (incomplete_ > 1) pause = std::max(pause, options_.interval * (1U << std::min(incomplete_ - 1, kDoublingsMost)));
  const bool wants = group_->rank() == 0 && options_.clock() - last_time_ >= pause;
  // The collective averages over the ranks, and the other ranks contribute 0. The mean is then 1 if rank 0 wants a
  // state.
  statistics[kWanted] = wants ? static_cast<float>(group_->size()) : 0.0f;
  statistics[kFailed] = taken_.has_value() && !kept_ ? 1.0f : 0.0f;
  statistics[kCost] = static_cast<float>(absl::ToDoubleSeconds(own_cost_));
}

void GroupState::Learn(absl::Span<const float> statistics) {
  wanted_ = statistics[kWanted] > 0.5f;
  cost_ = absl::Seconds(statistics[kCost]);
  if (taken_.has_value()) {
    const bool all = statistics[kFailed] == 0;
    if (all) complete_ = taken_;
    incomplete_ = all ? 0 : incomplete_ + 1;
  }
  taken_.reset();
  due_.reset();
}

void GroupState::Take(uint64_t step, absl::Span<const float> vector) {
  due_.emplace();
  if (options_.with_values) {
    const ValueRange part = EvenParts(vector.size(), group_->size())[static_cast<size_t>(group_->rank())];
    due_->assign(vector.begin() + part.begin, vector.begin() + part.end);
  }
  taken_.emplace();
  taken_->set_incarnation(options_.sender.incarnation());
  taken_->set_step(step);
  kept_ = false;
  wanted_ = false;
  last_time_ = options_.clock();
}

// While no state is complete, tries until the timeout. Once one is, a failure costs only a newer state, which is not
// worth waiting for. Only the try that succeeds counts as cost: a server that is away must not delay later states.
absl::Status GroupState::Send(const StateToKeep& keep, absl::Duration encoding) {
  const absl::Time deadline = SteadyTime() + options_.timeout;
  while (true) {
    const absl::Time began = options_.clock();
    absl::Status status = Server().KeepState(keep, deadline);
    if (status.ok()) own_cost_ = encoding + (options_.clock() - began);
    if (complete_.has_value() || !MayPass(status) || SteadyTime() + kBetweenTries >= deadline) return status;
    absl::SleepFor(kBetweenTries);
  }
}

absl::Status GroupState::Keep(std::string optimizer, absl::string_view own) {
  const absl::Time began = options_.clock();
  StateToKeep keep;
  *keep.header.mutable_sender() = options_.sender;
  keep.header.set_step(taken_->step());
  if (!first_.has_value()) first_ = taken_;
  // If servers' answers were lost, all ranks may have the first state, although none knows it.
  const v1::StateId& keeps = complete_.has_value() ? *complete_ : *first_;
  if (!Same(keeps, *taken_)) *keep.header.mutable_keeps() = keeps;
  const std::string bytes = EncodeState({*std::move(due_), std::move(optimizer), std::string(own)});
  due_.reset();
  keep.state = bytes;
  const absl::Duration encoding = options_.clock() - began;
  absl::Status status = Send(keep, encoding);
  if (absl::IsAborted(status)) return status;
  kept_ = status.ok();
  failures_ = kept_ ? 0 : failures_ + 1;
  // Only the 1st, 2nd, 4th, 8th, ... failure in a row gives a notice.
  if (!kept_ && (failures_ & (failures_ - 1)) == 0) {
    Notice(absl::StrCat("of step ", keep.header.step(), " is not kept, the ", failures_,
                        ". one in a row; a restart would go on from the last one that was"),
           status);
  }
  return absl::OkStatus();
}

}  // namespace hooke
