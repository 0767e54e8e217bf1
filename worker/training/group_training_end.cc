// The end of a group's training: its last exchange, and the save on all servers. Also the end of one start of the
// group, which its worker wants.

#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/rule_facts.h"
#include "worker/exchange/agreement.h"
#include "worker/report/want_of_server.h"
#include "worker/training/group_training.h"

namespace hooke {

absl::Status GroupTraining::Finish(uint64_t step) {
  deps_.reporter->Enter(v1::RankProgress::FINISHING);
  if (absl::Status status = group_step_->AwaitParameters(); !status.ok()) return status;
  if (HasExchanges()) {
    GatherNarrow();
    uint64_t sequence = step;
    if (step != options_.rhythm.steps_total) {
      absl::StatusOr<uint64_t> last = ExchangeEarly(step);
      if (!last.ok()) return last.status();
      sequence = *last;
    } else if (absl::Status status = AgreeOnEnd().status(); !status.ok()) {
      return status;
    }
    if (absl::Status status = SaveCenter(sequence); !status.ok()) return status;
    ScatterNarrow();
  } else if (deps_.center != nullptr) {
    // Under kNone the group exchanges nothing, and no other group waits for it. But it may stop the job.
    if (absl::Status status = AgreeOnEnd().status(); !status.ok()) return status;
    if (stopping_) {
      if (absl::Status status = SaveCenter(0); !status.ok()) return status;
    }
  }
  // No rank leaves before all have ended, because a rank that has left looks like one that died.
  return deps_.group->Barrier();
}

// Tells all ranks whether a rank has called Stop since the last step. Returns whether some rank's last exchange missed
// a server.
absl::StatusOr<bool> GroupTraining::AgreeOnEnd() {
  const bool missed = exchange_ != nullptr && exchange_->missed();
  uint64_t ranks[] = {wants_stop_ ? uint64_t{1} : 0, missed ? uint64_t{1} : 0};
  if (absl::Status status = SumNumbers(*deps_.group, absl::MakeSpan(ranks)); !status.ok()) return status;
  stopping_ = stopping_ || ranks[0] > 0;
  return ranks[1] > 0;
}

// Makes the last exchange of a training that ends before its last step, or whose last step was not known. Returns the
// sequence number of the last exchange. If all servers have the whole vector as it is after this step, there is nothing
// to send: a zero gradient, or a zero distance, would move the center by its momentum and weight decay. If a server has
// missed that exchange, the next one needs another number, because servers would take it for a repetition.
absl::StatusOr<uint64_t> GroupTraining::ExchangeEarly(uint64_t step) {
  if (exchange_->in_flight_since().has_value()) {
    if (absl::Status status = exchange_->Finish(); !status.ok()) return status;
  }
  const absl::StatusOr<bool> missed = AgreeOnEnd();
  if (!missed.ok()) return missed.status();
  // Under kNone a start goes on after its state's step, whether or not the servers have an exchange of that step.
  const bool sent = options_.rule != RuleName::kNone || exchange_->finished() > 0;
  if (last_begun_ == step && last_whole_ && sent && !*missed) return step;
  const uint64_t sequence = last_begun_ == step ? step + 1 : step;
  exchange_->Begin({sequence, {0, 1}, /*last=*/true});
  if (absl::Status status = exchange_->Finish(); !status.ok()) return status;
  return sequence;
}

// Makes the servers save the center. It does so even if an earlier incarnation made the last exchange, because that
// incarnation may have failed while saving.
absl::Status GroupTraining::SaveCenter(uint64_t step) {
  RankZeroWork save;
  save.attempt = [this, step](absl::Time deadline) {
    const auto ends = stopping_ ? CenterClient::Ends::kJob : CenterClient::Ends::kGroup;
    return deps_.center->Save(step, ends, deps_.arena->vector(), deadline);
  };
  save.stop = [this] { deps_.center->Stop(); };
  absl::Status saved = InRankZero(*deps_.group, CallFor(options_.attach_timeout), save);
  if (saved.ok() || absl::IsAborted(saved) || absl::IsFailedPrecondition(saved)) return saved;
  // A new start of the group may mend all other errors. It goes on from the values that the servers still have.
  return ForWantOf(WantedServer(saved),
                   absl::UnavailableError(absl::StrCat("the center is not on every server's disk: ", saved.message())));
}

absl::Status GroupTraining::LeaveIfAsked() {
  if (!may_leave_) return absl::OkStatus();
  if (absl::Status status = group_step_->AwaitParameters(); !status.ok()) return status;
  // A launcher that sees one rank leave ends the others, and these may still send their state.
  if (absl::Status status = deps_.group->Barrier(); !status.ok()) return status;
  return absl::CancelledError(absl::StrCat("left after step ", step_, ", as asked",
                                           leave_reason_.empty() ? "" : absl::StrCat(": ", leave_reason_)));
}

// Returns whether a group that is to leave waits for its next regular exchange.
bool GroupTraining::LeavesInRhythm() const {
  return HasExchanges() && InRounds(options_.rule) && FactsOf(options_.rule).sends == RuleSends::kGradients;
}

}  // namespace hooke
