#include "worker/rank/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/rank/agreement.h"
#include "worker/rank/evaluate.h"
#include "worker/rank/server_exchange.h"

namespace hooke {
namespace {

using Phase = v1::RankProgress;

}  // namespace

absl::Status PullInGroup(Group& group, CenterClient& center, const RankZeroCall& call, absl::Span<float> vector) {
  RankZeroWork pull;
  pull.attempt = [&](absl::Time deadline) { return center.Pull(vector, deadline); };
  pull.stop = [&] { center.Stop(); };
  absl::Status pulled = InRankZero(group, call, pull);
  if (!pulled.ok()) return pulled;
  return group.Broadcast(TensorList(vector), 0);
}

Trainer::Trainer(const TrainerParts& parts, TrainerOptions options)
    : parts_(parts),
      options_(std::move(options)),
      steps_per_epoch_(parts.sampler->steps_per_epoch()),
      steps_total_(steps_per_epoch_ * options_.epochs),
      partition_(parts.arena->vector().size()),
      pixels_(options_.batch * parts.train->values),
      labels_(options_.batch) {
  const uint64_t ranks = static_cast<uint64_t>(parts.group->size());
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    const Range slice = partition_.SliceValues({rank, ranks});
    slices_.push_back({slice.begin, slice.end});
  }
}

absl::StatusOr<uint64_t> Trainer::Run() {
  absl::StatusOr<uint64_t> first = Begin();
  if (!first.ok()) return first.status();
  if (absl::Status status = OpenAggregation(); !status.ok()) return status;
  parts_.reporter->SetPlan({.step = *first, .steps_total = steps_total_, .epoch = Epoch(*first)});
  for (uint64_t step = *first; step < steps_total_; ++step) {
    if (absl::Status status = Step(step); !status.ok()) return status;
    const uint64_t done = step + 1;
    if (ExchangeDue(done)) {
      if (absl::Status status = Exchange(done); !status.ok()) return status;
    }
    if (EvaluationDue(done)) {
      if (absl::Status status = Evaluate(done); !status.ok()) return status;
    }
  }
  parts_.reporter->Enter(Phase::FINISHING);
  if (absl::Status status = SaveCenter(); !status.ok()) return status;
  // Nobody leaves before all have ended: a rank that is gone looks like one that died.
  if (absl::Status status = parts_.group->Barrier(); !status.ok()) return status;
  return std::max(*first, steps_total_);
}

RankZeroCall Trainer::CallFor(absl::Duration timeout) const {
  RankZeroCall call;
  call.timeout = timeout;
  call.collective_timeout = options_.collective_timeout;
  call.clock = options_.clock;
  call.sleep = options_.sleep;
  return call;
}

absl::StatusOr<uint64_t> Trainer::Begin() {
  parts_.reporter->Enter(Phase::ATTACHING);
  Attached attached;
  if (parts_.center != nullptr) {
    absl::StatusOr<Attached> center = BeginFromCenter();
    if (!center.ok()) return center.status();
    attached = *center;
    OpenExchange(attached);
  }
  absl::Status status = parts_.group->Broadcast(TensorList(parts_.arena->vector()), 0);
  if (!status.ok()) return status;
  if (parts_.center != nullptr) OpenRule();
  return attached.last_sequence;
}

// Rank 0 attaches (creating the center from this group's initial values if it is the first) and reads the center; all
// ranks learn how it went.
absl::StatusOr<Attached> Trainer::BeginFromCenter() {
  Attached attached;
  const RankZeroCall call = CallFor(options_.attach_timeout + TransferTime(parts_.arena->vector().size()));
  RankZeroWork begin;
  begin.attempt = [&](absl::Time deadline) {
    absl::StatusOr<Attached> center = parts_.center->Attach(parts_.arena->vector(), deadline);
    if (!center.ok()) return center.status();
    attached = *center;
    return parts_.center->Pull(parts_.arena->vector(), deadline + call.timeout);
  };
  begin.stop = [this] { parts_.center->Stop(); };
  absl::Status outcome = InRankZero(*parts_.group, call, begin);
  if (!outcome.ok()) return outcome;
  uint64_t numbers[] = {attached.last_sequence, attached.window_blocks};
  absl::Status status = BroadcastNumbers(*parts_.group, absl::MakeSpan(numbers));
  if (!status.ok()) return status;
  return Attached{numbers[0], static_cast<uint32_t>(numbers[1])};
}

void Trainer::OpenExchange(const Attached& attached) {
  ExchangeOptions exchange;
  exchange.sender = options_.sender;
  exchange.ranks = static_cast<uint32_t>(parts_.group->size());
  exchange.partition = partition_;
  exchange.servers = parts_.center->servers();
  exchange.encoding = options_.encoding;
  exchange.window_blocks = attached.window_blocks;
  // From where the group is, whatever it sends.
  exchange.recreate = [this](size_t server, absl::Span<const float> /*sent*/, absl::Time deadline) {
    return parts_.center->AttachShard(server, parts_.arena->vector(), deadline).status();
  };
  exchange_ = std::make_unique<ExchangeClient>(std::move(exchange));
  notices_ = std::make_unique<ServerNotices>(options_.clock());
}

// All ranks hold what the center held.
void Trainer::OpenRule() {
  GroupSlice slice;
  slice.values = parts_.arena->vector().size();
  slice.parameters = parts_.arena->parameters().size();
  slice.slice = exchange_->slice();
  rule_ = MakeGroupRule(options_.rule, slice);
  rule_->Begin(parts_.arena->vector());
  last_exchange_ = options_.clock();
}

absl::Status Trainer::OpenAggregation() {
  Aggregation::Parts parts;
  parts.group = parts_.group;
  parts.model = parts_.model;
  parts.arena = parts_.arena;
  parts.optimizer = rule_ == nullptr || rule_->StepsLocally() ? parts_.optimizer : nullptr;
  parts.reporter = parts_.reporter;
  parts.collective_timeout = options_.collective_timeout;
  absl::StatusOr<std::unique_ptr<Aggregation>> aggregation = Aggregation::Make(parts, options_.aggregation);
  if (!aggregation.ok()) return aggregation.status();
  aggregation_ = *std::move(aggregation);
  return absl::OkStatus();
}

absl::Status Trainer::Step(uint64_t step) {
  Reporter& reporter = *parts_.reporter;
  reporter.Enter(Phase::COMPUTE);
  parts_.train->read(parts_.sampler->BatchIndices(step), absl::MakeSpan(pixels_), absl::MakeSpan(labels_));
  ProposeExchange();
  absl::StatusOr<float> loss = aggregation_->Step({pixels_, labels_}, LearningRate(options_.schedule, Epoch(step)));
  if (!loss.ok()) return loss.status();
  if (rule_ != nullptr) rule_->AddStep(parts_.arena->gradients());
  if (!std::isfinite(*loss)) {
    aggregation_->Settle().IgnoreError();  // On all ranks: none leaves while another waits for it.
    return absl::InvalidArgumentError(absl::StrCat("training has diverged: the loss at step ", step + 1, " is ", *loss,
                                                   "; try a smaller learning rate"));
  }
  reporter.AddStep({.step = step + 1,
                    .epoch = Epoch(step + 1),
                    .loss = *loss,
                    .samples = uint64_t{options_.batch} * static_cast<uint64_t>(parts_.group->size())});
  const uint64_t done = step + 1;
  if (!ExchangeDue(done) && !EvaluationDue(done) && done < steps_total_) return absl::OkStatus();
  // Others are about to use the vector and the group.
  reporter.Enter(Phase::COLLECTIVE);
  return aggregation_->Settle();
}

// By time: rank 0 decides and the gradients' collective, which averages the statistics, too, tells the others.
void Trainer::ProposeExchange() {
  if (parts_.center == nullptr || options_.interval_time == absl::ZeroDuration()) return;
  float& proposal = parts_.arena->statistics()[kAggregationStatistics];
  const bool due = parts_.group->rank() == 0 && options_.clock() - last_exchange_ >= options_.interval_time;
  proposal = due ? static_cast<float>(parts_.group->size()) : 0.0f;
}

bool Trainer::ExchangeDue(uint64_t step) const {
  if (parts_.center == nullptr) return false;
  if (options_.rule == RuleName::kNone)
    return options_.sender.group() == 0 && (EvaluationDue(step) || step == steps_total_);
  if (step == steps_total_) return true;
  if (options_.interval_time == absl::ZeroDuration()) return step % options_.interval == 0;
  return parts_.arena->statistics()[kAggregationStatistics] > 0.5f;
}

bool Trainer::EvaluationDue(uint64_t step) const {
  if (options_.sender.group() != 0) return false;
  if (step == steps_total_) return parts_.center == nullptr;  // A center is evaluated when all groups have ended.
  return options_.evaluate_every > 0 && step % (options_.evaluate_every * steps_per_epoch_) == 0;
}

absl::Status Trainer::Exchange(uint64_t step) {
  parts_.reporter->Enter(Phase::EXCHANGE);
  last_exchange_ = options_.clock();
  ExchangeCall call;
  call.sequence = step;
  call.timeout = std::min(options_.exchange_timeout + options_.grace, options_.collective_timeout / 2);
  call.probe_timeout = std::min(options_.exchange_timeout / 10 + options_.grace, call.timeout);
  // The last one may take longer: there is no next.
  const bool last = step == steps_total_;
  if (last) call.timeout = call.probe_timeout = options_.collective_timeout * 2 / 3;
  const absl::Span<float> vector = parts_.arena->vector();
  const std::vector<ServerOutcome> outcomes = exchange_->Exchange(
      call, rule_->Prepare(vector), [this, vector](const BlockAnswer& answer) { rule_->Take(answer, vector); });
  bool all_ok = true;
  absl::Status failure;
  for (const ServerOutcome& outcome : outcomes) {
    if (outcome.status.ok()) continue;
    all_ok = false;
    if (IsFatalExchangeError(outcome.status)) {
      failure = outcome.status;
    } else if (last && failure.ok()) {
      failure = absl::UnavailableError(outcome.status.message());
    }
  }
  parts_.reporter->AddExchange(all_ok);
  if (last) {
    if (absl::Status status = AgreeOnOutcome(*parts_.group, failure); !status.ok()) return status;
  }
  if (!failure.ok()) return failure;
  for (std::string& notice : notices_->Take(outcomes, step, options_.clock())) {
    parts_.reporter->Notice(std::move(notice));
  }
  return AllGather();
}

absl::Status Trainer::AllGather() {
  parts_.reporter->Enter(Phase::COLLECTIVE);
  return parts_.group->AllGather(TensorList(parts_.arena->vector()), slices_);
}

// Also where the last exchange was made by an earlier incarnation, which may have failed here.
absl::Status Trainer::SaveCenter() {
  if (!ExchangeDue(steps_total_)) return absl::OkStatus();
  RankZeroWork save;
  save.attempt = [this](absl::Time deadline) {
    return parts_.center->Save(steps_total_, parts_.arena->vector(), deadline);
  };
  save.stop = [this] { parts_.center->Stop(); };
  absl::Status saved = InRankZero(*parts_.group, CallFor(options_.attach_timeout), save);
  if (saved.ok() || absl::IsAborted(saved) || absl::IsFailedPrecondition(saved)) return saved;
  // All else another start of the group may mend: it goes on from what the servers still have.
  return absl::UnavailableError(absl::StrCat("the center is not on every server's disk: ", saved.message()));
}

absl::Status Trainer::Evaluate(uint64_t step) {
  parts_.reporter->Enter(Phase::EVALUATING);
  if (parts_.center == nullptr) return EvaluateCenter(step);
  // The center takes the group's place in the arena for as long as it is evaluated.
  const absl::Span<float> vector = parts_.arena->vector();
  const std::vector<float> own(vector.begin(), vector.end());
  absl::Status status = PullInGroup(*parts_.group, *parts_.center, CallFor(options_.exchange_timeout), vector);
  if (status.ok()) {
    status = EvaluateCenter(step);
  } else if (!IsFatalExchangeError(status)) {
    // The servers, and the next exchange mends a lost shard; or the group, which shows in the next collective.
    parts_.reporter->Notice(absl::StrCat("the center was not evaluated at step ", step, ": ", status.message()));
    status = absl::OkStatus();
  }
  std::copy(own.begin(), own.end(), vector.begin());
  return status;
}

absl::Status Trainer::EvaluateCenter(uint64_t step) {
  absl::StatusOr<Evaluation> result = EvaluateInGroup(*parts_.group, *parts_.model, *parts_.test);
  if (!result.ok()) return result.status();
  if (parts_.group->rank() != 0) return absl::OkStatus();
  parts_.reporter->Evaluated(EvaluatedMessage(*result, step, Epoch(step)));
  return absl::OkStatus();
}

}  // namespace hooke
