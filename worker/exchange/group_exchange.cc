#include "worker/exchange/group_exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "algorithms/fragments.h"
#include "algorithms/rule_facts.h"
#include "clocks/steady_time.h"
#include "worker/exchange/agreement.h"
#include "worker/exchange/exchange_deadline.h"
#include "worker/exchange/server_exchange.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

using Phase = v1::RankProgress;

// Returns the least time between two exchanges in which a rank measures its distance from the center. `values` is the
// length of the rank's slice. Measuring takes about 1 ns a value, so less than 0.3 % of the time.
absl::Duration MeasureEvery(uint64_t values) {
  return std::max(absl::Milliseconds(400), absl::Nanoseconds(400) * static_cast<double>(values));
}

// Does not initialize the values: pages that nobody writes to take no memory.
std::unique_ptr<float[]> AllocateUntouched(uint64_t values) { return std::unique_ptr<float[]>(new float[values]); }

}  // namespace

GroupExchange::GroupExchange(const GroupExchangeDependencies& deps, GroupExchangeOptions options)
    : deps_(deps),
      options_(std::move(options)),
      partition_(deps.arena->vector().size()),
      ranks_(static_cast<uint64_t>(deps.group->size())),
      slices_(options_.slices > 0 ? std::min<uint64_t>(options_.slices, ranks_) : ranks_),
      servers_(deps.center->servers().size()),
      vector_(deps.arena->vector()),
      notices_(absl::Now()),
      copy_(options_.overlaps ? AllocateUntouched(vector_.size()) : nullptr),
      center_(SendsFromLastAnswer(options_.rule) && HasSlice() ? AllocateUntouched(vector_.size()) : nullptr),
      client_(MakeClient()) {
  deps_.reporter->SetServers(client_->servers());
  GroupSlice slice;
  slice.values = vector_.size();
  slice.parameters = deps_.arena->parameters().size();
  slice.slice = client_->slice();
  slice.alpha = deps_.center->job().alpha();
  rule_ = MakeGroupRule(options_.rule, slice);
  rule_->Begin(vector_);
  if (center_ != nullptr) std::copy(vector_.begin(), vector_.end(), center_.get());
}

GroupExchange::~GroupExchange() {
  absl::MutexLock lock(&mutex_);
  abandoned_ = true;
}

std::unique_ptr<ExchangeClient> GroupExchange::MakeClient() {
  ExchangeOptions options;
  options.sender = options_.sender;
  options.slices = static_cast<uint32_t>(slices_);
  options.partition = partition_;
  options.servers = deps_.center->servers();
  options.encoding = options_.encoding;
  options.answers_center = AnswersWithCenter(options_.rule);
  options.window_blocks = options_.window_blocks;
  options.recreate = [this](size_t server, absl::Time deadline) { return Recreate(server, deadline); };
  options.on_presence = [this](size_t server, std::optional<absl::Time> since) {
    deps_.reporter->SetAbsent(deps_.center->servers()[server]->address(), since);
  };
  options.on_setback = [this](std::string text) { deps_.reporter->NoticeSetback(std::move(text)); };
  return std::make_unique<ExchangeClient>(std::move(options));
}

// Rebuilds a shard that its server has lost: from our last copy of the center if there is one, otherwise from the
// vector. Waits until the trainer rests in Finish, because training changes the vector.
absl::Status GroupExchange::Recreate(size_t server, absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finishing_ || abandoned_; };
    mutex_.Await(absl::Condition(&may));
    if (abandoned_) return absl::CancelledError("the rank ends");
  }
  // The exchange's own deadline may have passed while the group trained.
  if (options_.overlaps) deadline = std::max(deadline, SteadyTime() + options_.exchange_timeout);
  const absl::Span<const float> from =
      center_ != nullptr ? absl::MakeConstSpan(center_.get(), vector_.size()) : vector_;
  return deps_.center->AttachShard(server, from, deadline).status();
}

void GroupExchange::Begin(const Exchange& exchange) {
  deps_.reporter->Enter(Phase::EXCHANGE);
  in_flight_since_ = exchange.step;
  exchange_ = exchange;
  ranges_ = RangesOf(static_cast<uint64_t>(deps_.group->rank()));
  const absl::Time now = options_.clock();
  measures_ = now >= measures_next_;
  if (measures_) {
    measures_next_ = now + MeasureEvery(client_->slice().size());
    absl::MutexLock lock(&mutex_);
    measured_.reset();
  }
  ExchangeCall call;
  call.sequence = exchange.step;
  call.fragment = exchange.fragment;
  GroupPatience patience = {options_.exchange_timeout, options_.grace, options_.collective_timeout};
  patience.ranks = ranks_;
  for (const Range& range : ranges_) patience.values += range.size();
  patience.last = exchange.last;
  patience.awaits_quorum = options_.awaits_quorum;
  call.patience = PatienceOf(patience);
  const absl::Span<const float> prepared = rule_->Prepare(vector_, ranges_);
  client_->Start(call, copy_ == nullptr ? prepared : Copy(prepared), Sink());
}

absl::Span<const float> GroupExchange::Copy(absl::Span<const float> prepared) {
  const absl::Span<float> copy(copy_.get(), vector_.size());
  for (const Range& range : ranges_) {
    std::copy(prepared.begin() + range.begin, prepared.begin() + range.end, copy.begin() + range.begin);
  }
  // While another fragment was exchanged, answers to earlier exchanges of this fragment may have come. They are held
  // and not yet applied to the vector, so the copy is corrected by them here.
  absl::MutexLock lock(&mutex_);
  for (const Held& held : held_) {
    if (InFragment(held.first)) rule_->CorrectCopy({held.first, held.sent, held.values}, copy);
  }
  return copy;
}

AnswerSink GroupExchange::Sink() {
  if (copy_ != nullptr) return [this](const BlockAnswer& answer) { Hold(answer); };
  return [this](const BlockAnswer& answer) { Take(answer); };
}

// Answers to earlier exchanges do not count: the group has gone on since.
void GroupExchange::Measure(const BlockAnswer& answer) {
  if (!measures_ || answer.earlier) return;
  const std::optional<CenterGap> gap = rule_->Gap(answer, vector_);
  if (!gap.has_value()) return;
  absl::MutexLock lock(&mutex_);
  if (!measured_.has_value()) measured_.emplace();
  *measured_ += *gap;
}

void GroupExchange::Take(const BlockAnswer& answer) {
  Measure(answer);
  rule_->Take(answer, vector_);
  if (center_ != nullptr) std::copy(answer.values.begin(), answer.values.end(), center_.get() + answer.first);
}

// Returns the values of exchange_ that a rank of this group exchanges.
std::vector<Range> GroupExchange::RangesOf(uint64_t rank) const {
  if (rank >= slices_) return {};
  return FragmentValues(partition_, {rank, slices_}, servers_, exchange_.fragment);
}

// Copies the other ranks' slices into the known center, after the all-gather. It skips the values of servers that
// failed this rank's exchange. A server with which this rank exchanged nothing counts as not failed.
void GroupExchange::NoteCenter(const std::vector<ServerOutcome>& outcomes) {
  if (center_ == nullptr) return;
  for (uint64_t server = 0; server < servers_; ++server) {
    const std::string& address = deps_.center->servers()[server]->address();
    const bool failed = std::any_of(outcomes.begin(), outcomes.end(), [&address](const ServerOutcome& outcome) {
      return !outcome.status.ok() && outcome.address == address;
    });
    if (failed) continue;
    const Range shard = partition_.ShardValues({server, servers_});
    for (uint64_t rank = 0; rank < slices_; ++rank) {
      if (rank == static_cast<uint64_t>(deps_.group->rank())) continue;
      for (const Range& each : RangesOf(rank)) {
        const Range range = Intersect(each, shard);
        std::copy(vector_.begin() + range.begin, vector_.begin() + range.end, center_.get() + range.begin);
      }
    }
  }
}

void GroupExchange::Hold(const BlockAnswer& answer) {
  Held held = {answer.first, {answer.values.begin(), answer.values.end()}, {}, answer.earlier};
  if (answer.sent.data() != copy_.get() + answer.first) held.sent.assign(answer.sent.begin(), answer.sent.end());
  // This exchange has not sent the block yet, so the block's copy can still be corrected.
  if (answer.earlier && InFragment(answer.first)) rule_->CorrectCopy(answer, {copy_.get(), vector_.size()});
  absl::MutexLock lock(&mutex_);
  held_.push_back(std::move(held));
}

// Applies the held answers that belong to this exchange's fragment. Other answers stay held, because this all-gather
// would not carry their changes to the other ranks.
void GroupExchange::TakeHeld() {
  std::vector<Held> held;
  {
    absl::MutexLock lock(&mutex_);
    held.swap(held_);
  }
  std::vector<Held> rest;
  for (Held& each : held) {
    if (!InFragment(each.first)) {
      rest.push_back(std::move(each));
      continue;
    }
    absl::Span<const float> sent = each.sent;
    if (sent.empty()) sent = {copy_.get() + each.first, each.values.size()};
    Take({each.first, sent, each.values, each.earlier});
  }
  absl::MutexLock lock(&mutex_);
  held_ = std::move(rest);
}

bool GroupExchange::InFragment(uint64_t value) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [value](const Range& range) { return value >= range.begin && value < range.end; });
}

bool GroupExchange::SkipsFirstServer() const { return client_->Skips(deps_.center->servers()[0]->address()); }

void GroupExchange::SetFinishing(bool finishing) {
  absl::MutexLock lock(&mutex_);
  finishing_ = finishing;
}

absl::Status GroupExchange::Finish() {
  deps_.reporter->Enter(Phase::EXCHANGE);
  SetFinishing(true);
  const std::vector<ServerOutcome> outcomes = client_->Wait();
  SetFinishing(false);
  in_flight_since_.reset();
  TakeHeld();
  bool all_ok = true;
  absl::Status failure;
  for (const ServerOutcome& outcome : outcomes) {
    if (outcome.status.ok()) continue;
    all_ok = false;
    if (IsFatalExchangeError(outcome.status)) {
      failure = outcome.status;
    } else if (exchange_.last && failure.ok()) {
      failure = ForWantOf(outcome.address, absl::UnavailableError(outcome.status.message()));
    }
  }
  deps_.reporter->AddExchange(all_ok);
  if (measures_ && all_ok) {
    absl::MutexLock lock(&mutex_);
    gap_ = measured_.value_or(gap_);
  }
  missed_ = !all_ok;
  ++finished_;
  if (exchange_.last) {
    if (absl::Status status = AgreeOnOutcome(*deps_.group, failure); !status.ok()) return status;
  }
  if (!failure.ok()) return failure;
  for (std::string& notice : notices_.Take(outcomes, exchange_.step, absl::Now())) {
    deps_.reporter->Notice(std::move(notice));
  }
  if (absl::Status status = AllGather(); !status.ok()) return status;
  NoteCenter(outcomes);
  return absl::OkStatus();
}

// Gathers all ranks' parts of the fragment, in the order of the ranks. A rank that is done waits here for ranks whose
// servers are slow.
absl::Status GroupExchange::AllGather() {
  std::vector<absl::Span<float>> pieces;
  std::vector<ValueRange> slices;
  uint64_t gathered = 0;
  for (uint64_t rank = 0; rank < ranks_; ++rank) {
    const uint64_t begin = gathered;
    for (const Range& range : RangesOf(rank)) {
      // Adjacent ranges are joined, so the whole vector is one piece.
      const bool adjacent = !pieces.empty() && pieces.back().end() == vector_.data() + range.begin;
      if (adjacent) {
        pieces.back() = {pieces.back().data(), pieces.back().size() + range.size()};
      } else {
        pieces.push_back(vector_.subspan(range.begin, range.size()));
      }
      gathered += range.size();
    }
    slices.push_back({begin, gathered});
  }
  return deps_.group->AllGather(TensorList(pieces), slices);
}

}  // namespace hooke
