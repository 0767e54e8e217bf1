#include "server/parameters/shard.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/finite.h"
#include "algorithms/fragments.h"
#include "wire/steps.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(ShardPlan plan, std::shared_ptr<WaitClock> clock) {
  return Make(std::move(plan), std::move(clock), Memory::kOfItsOwn);
}

absl::StatusOr<std::unique_ptr<Shard>> Shard::Make(ShardPlan plan, std::shared_ptr<WaitClock> clock, Memory values) {
  absl::StatusOr<std::unique_ptr<CenterRule>> rule = MakeCenterRule(plan.rule.options);
  if (!rule.ok()) return rule.status();
  const std::string too_large =
      absl::StrCat("this server's machine has no memory for the shard of job ", plan.job_id, ", ", plan.memory_bytes,
                   " bytes; lower --max-center-bytes, add servers or add memory");
  // A peer's numbers decide how much memory is allocated here, so the allocation may fail.
  try {
    std::unique_ptr<Shard> shard(new Shard(std::move(plan), *std::move(rule), std::move(clock)));
    if (values != Memory::kOfAnother) shard->MakeState();
    if (values == Memory::kOfItsOwn) shard->MakeValues();
    return shard;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(too_large);
  }
}

Shard::Shard(ShardPlan plan, std::unique_ptr<CenterRule> rule, std::shared_ptr<WaitClock> clock)
    : plan_(std::move(plan)),
      rule_(std::move(rule)),
      clock_(std::move(clock)),
      meter_(plan_.job.groups(), clock_),
      blocks_(std::make_unique<Block[]>(plan_.blocks.size())),
      book_({plan_.job.groups(), plan_.slices(), rule_->traits().in_rounds ? plan_.blocks.size() : 0, plan_.rule.round,
             rule_->traits().drops_late}),
      paces_(plan_.job.groups()),
      ended_(plan_.job.groups()),
      incarnations_(std::make_unique<std::atomic<uint32_t>[]>(plan_.job.groups())),
      told_(plan_.job.groups()) {
  static_assert(sizeof(Block) + RoundBook::kBlockBytes <= kBlockObjectBytes, "the plan counts them");
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].applied.assign(plan_.job.groups(), ExchangeId{0, plan_.job.first_step()});
    blocks_[i].seen.assign(plan_.job.groups(), 0);
  }
  if (rule_->traits().answers_center) return;  // Repeats get the present center, so no answers are kept.
  for (uint64_t i = 0; i < uint64_t{plan_.job.groups()} * plan_.slices(); ++i) {
    windows_.push_back(std::make_unique<AnswerWindow>(plan_.window_blocks));
  }
}

void Shard::MakeValues() {
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].values.assign(BlockRange(i).size(), 0.0f);
  }
}

void Shard::MakeState() {
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].state.assign(BlockRange(i).size() * rule_->traits().state_values, 0.0f);
  }
}

absl::StatusOr<Shard::Attached> Shard::Attach(absl::Time now, const Speaker& speaker, absl::Duration lease) {
  Attached attached;
  {
    absl::MutexLock lock(&mutex_);
    if (successor_ > 0) return Ended();
    if (absl::Status status = Admit(speaker); !status.ok()) return status;
    AttachDecision decision = DecideAttach(now, attach_, speaker, lease);
    attach_ = decision.next;
    attached.answer = decision.answer;
    Told& told = told_[speaker.group];
    attached.changed = told.incarnation != speaker.incarnation || told.answer != decision.answer;
    told = {speaker.incarnation, decision.answer};
    attached.reason = std::move(decision.reason);
  }
  attached.last_sequence = LastSequence(speaker.group);
  bool begins = false;
  if (attached.answer == AttachAnswer::kReady && blocks() > 0) {
    absl::MutexLock lock(&book_mutex_);
    // A group also attaches after its last step, to see whether that step is saved. No group may wait for it then.
    const bool ended = IsLastStep(attached.last_sequence) || ended_[speaker.group] == speaker.incarnation;
    if (!ended) book_.roster().Enter(speaker.group, attached.last_sequence);
    begins = book_.Begin(speaker.group, {speaker.incarnation, attached.last_sequence});
  }
  if (begins) NoteBegun(speaker.group);
  LookAgain();  // Turns of an earlier incarnation may be waiting, and must end.
  return attached;
}

absl::Status Shard::EndGroup(const Speaker& speaker, bool stops) {
  if (absl::Status status = CheckSpeaker(speaker); !status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    if (successor_ > 0) return Ended();  // The successor has copied stops_, or is about to.
    absl::MutexLock book_lock(&book_mutex_);
    if (ended_[speaker.group] != speaker.incarnation || (stops && !stops_)) ++updates_;
    ended_[speaker.group] = speaker.incarnation;
    book_.roster().End(speaker.group);
    stops_ = stops_ || stops;
  }
  LookAgain();  // Rounds may be complete without the group.
  return absl::OkStatus();
}

// Marks all updates so far as seen by the group, because it is about to read the center.
void Shard::NoteBegun(uint32_t group) {
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    blocks_[i].seen[group] = blocks_[i].updates;
  }
}

absl::StatusOr<Shard::Pace> Shard::TellPace(absl::Time now, const Speaker& speaker, double steps_per_second) {
  if (!(std::isfinite(steps_per_second) && steps_per_second >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps_per_second is ", steps_per_second, "; a finite number of at least 0 is allowed"));
  }
  if (absl::Status status = CheckOpen(speaker); !status.ok()) return status;
  Pace pace;
  {
    absl::MutexLock lock(&book_mutex_);
    if (steps_per_second > 0) paces_[speaker.group] = {steps_per_second, now};
    pace.fastest_steps_per_second = FastestPace(paces_, now, kPaceMemory);
    pace.stops = stops_;
  }
  // Count the rounds of the first rank's blocks, because it has blocks of every fragment that is not empty.
  const Range common = Intersect(plan_.SliceOf(0), plan_.blocks);
  std::vector<uint64_t> rounds;
  for (uint32_t i = 0; i < fragments(); ++i) {
    const Range blocks = FragmentBlocks(common, {i, fragments()});
    rounds.push_back(blocks.empty() ? std::numeric_limits<uint64_t>::max() : 0);
    if (blocks.empty()) continue;
    const Block& first = blocks_[blocks.begin - plan_.blocks.begin];
    absl::MutexLock lock(&first.mutex);
    rounds.back() = first.updates;
  }
  pace.next_fragment = NextFragment(rounds);
  return pace;
}

absl::Status Shard::WriteInitial(absl::Time now, const Speaker& speaker, uint64_t first,
                                 absl::Span<const float> values) {
  absl::StatusOr<uint64_t> index = FindBlock(first, values.size());
  if (!index.ok()) return index.status();
  if (absl::Status status = CheckFinite(speaker.group, first, values); !status.ok()) return status;
  // mutex_ is held during the copy, because a sender that has lost its right must not write into an initialized center.
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckInitializer(speaker); !status.ok()) return status;
  attach_.right->until = std::max(attach_.right->until, now + attach_.right->lease);
  Block& block = blocks_[*index];
  absl::MutexLock block_lock(&block.mutex);
  std::copy(values.begin(), values.end(), block.values.begin());
  return absl::OkStatus();
}

absl::Status Shard::CompleteInitialize(const Speaker& speaker) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = CheckSpeaker(speaker); !status.ok()) return status;
  if (attach_.initialized) return absl::OkStatus();
  if (absl::Status status = CheckInitializer(speaker); !status.ok()) return status;
  attach_.initialized = true;
  return absl::OkStatus();
}

void Shard::Close() { CloseFor(0); }

std::vector<GroupReached> Shard::EndGeneration(uint32_t successor) {
  CloseFor(std::max<uint32_t>(successor, successor_));
  if (blocks() == 0 || !initialized()) return {};
  std::vector<GroupReached> reached(plan_.job.groups(), {0, std::numeric_limits<uint64_t>::max()});
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    for (uint32_t group = 0; group < plan_.job.groups(); ++group) {
      const ExchangeId& applied = blocks_[i].applied[group];
      reached[group].incarnation = std::max(reached[group].incarnation, applied.incarnation);
      reached[group].step = std::min(reached[group].step, applied.sequence);
    }
  }
  return reached;
}

uint32_t Shard::first_incarnation() const { return std::max<uint32_t>(plan_.job.first_incarnation(), successor_); }

void Shard::CloseFor(uint32_t successor) {
  {
    absl::MutexLock lock(&mutex_);
    // A start that was cut off may come back after this server was started again, even one that has never attached. So
    // a snapshot must have the end.
    if (successor > successor_) updates_.fetch_add(1, std::memory_order_release);
    successor_ = successor;
    closed_ = true;
  }
  LookAgain();
}

void Shard::StopWaiting() {
  stopping_ = true;
  LookAgain();
}

absl::Status Shard::Ended() const {
  if (const uint32_t successor = successor_; successor > 0) return GenerationOver(plan_.job_id, successor);
  return absl::FailedPreconditionError(absl::StrCat("job ", plan_.job_id, " has ended"));
}

bool Shard::initialized() const {
  absl::MutexLock lock(&mutex_);
  return attach_.initialized;
}

absl::Status Shard::CheckSpeaker(const Speaker& speaker) const {
  if (const uint32_t successor = successor_; speaker.incarnation < successor) {
    return GenerationOver(plan_.job_id, successor);
  }
  if (absl::Status status = CheckSpeakerOf(plan_, speaker); !status.ok()) {
    // A server that has gone back to a snapshot of an earlier generation may not know the sender's group yet.
    const std::atomic<uint32_t>* const all = incarnations_.get();
    const uint32_t latest = *std::max_element(all, all + plan_.job.groups());
    if (latest == 0 || speaker.incarnation <= latest) return status;
  } else {
    const uint32_t attached = incarnations_[speaker.group];
    if (speaker.incarnation == attached) return absl::OkStatus();
    if (speaker.incarnation < attached) return Replaced(speaker.group, speaker.incarnation, attached);
  }
  return absl::NotFoundError(absl::StrCat("start ", speaker.incarnation, " of group ", speaker.group,
                                          " has not attached to the center of job ", plan_.job_id,
                                          " on this server; attach to it first"));
}

absl::Status Shard::Admit(const Speaker& speaker) {
  if (absl::Status status = CheckSpeakerOf(plan_, speaker); !status.ok()) return status;
  const uint32_t attached = incarnations_[speaker.group];
  if (speaker.incarnation < attached) return Replaced(speaker.group, speaker.incarnation, attached);
  incarnations_[speaker.group] = speaker.incarnation;
  absl::MutexLock lock(&book_mutex_);
  book_.NoteCome(speaker.group);
  return absl::OkStatus();
}

// Refuses values that are not finite. A group that diverged must not spoil the center, and with it all other groups.
absl::Status Shard::CheckFinite(uint32_t group, uint64_t first, absl::Span<const float> values) {
  if (AllFinite(values)) return absl::OkStatus();
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  return absl::InvalidArgumentError(absl::StrCat("group ", group, " sent ", *bad, " for value ",
                                                 first + (bad - values.begin()),
                                                 " of the center; values are finite (has its training diverged?)"));
}

absl::Status Shard::CheckExchange(const Exchange& exchange, uint64_t block) const {
  if (exchange.sequence <= plan_.job.first_step()) {
    return absl::InvalidArgumentError(
        absl::StrCat("header.sequence is ", exchange.sequence, "; it is at least ", plan_.job.first_step() + 1));
  }
  if (exchange.sequence > kStepMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("header.sequence is ", exchange.sequence, "; it is at most ", kStepMax));
  }
  // If two ranks sent the same block, the second rank's exchange would be taken for a repeat of the first's.
  const uint64_t global = plan_.blocks.begin + block;
  const Range slice = plan_.SliceOf(exchange.speaker.rank);
  if (global < slice.begin || global >= slice.end) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the block at value ", exchange.first, " is not of rank ", exchange.speaker.rank, ", who exchanges blocks ",
        slice.begin, " to before ", slice.end, " of ", plan_.partition.block_values(), " values"));
  }
  return absl::OkStatus();
}

absl::Status Shard::CheckInitializer(const Speaker& speaker) const {
  const bool may = !closed_ && !attach_.initialized && attach_.right.has_value() &&
                   attach_.right->group == speaker.group && attach_.right->incarnation == speaker.incarnation;
  if (may) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("group ", speaker.group,
                                             " has no right, or not any more, to initialize the center of job ",
                                             plan_.job_id, "; attach again"));
}

uint64_t Shard::HighestSequence(uint32_t group) const {
  uint64_t highest = 0;
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    highest = std::max(highest, blocks_[i].applied[group].sequence);
  }
  return highest;
}

uint64_t Shard::LastSequence(uint32_t group) const {
  uint64_t lowest = std::numeric_limits<uint64_t>::max();
  for (uint64_t i = 0; i < blocks(); ++i) {
    absl::MutexLock lock(&blocks_[i].mutex);
    lowest = std::min(lowest, blocks_[i].applied[group].sequence);
  }
  return lowest;
}

absl::StatusOr<uint64_t> Shard::FindBlock(uint64_t first, uint64_t values) const {
  const Range held = plan_.partition.Values(plan_.blocks);
  if (first < held.begin || first >= held.end) {
    return absl::InvalidArgumentError(
        absl::StrCat("block.first is ", first, "; this shard holds values ", held.begin, " to before ", held.end));
  }
  const uint64_t global = plan_.partition.BlockOf(first);
  const Range range = plan_.BlockRange(global);
  if (first == range.begin && values == range.size()) return global - plan_.blocks.begin;
  return absl::InvalidArgumentError(absl::StrCat("a block has ", values, " values from value ", first,
                                                 " on; allowed there are ", range.size(), " values from value ",
                                                 range.begin, " on"));
}

}  // namespace hooke
