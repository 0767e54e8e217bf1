#include "mpi_group/transport/settlement.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

template <size_t kSize>
void SetText(std::array<char, kSize>& to, absl::string_view text) {
  to.fill(0);
  std::memcpy(to.data(), text.data(), std::min(text.size(), kSize - 1));
}

absl::StatusCode CodeOf(const Statement& statement) { return static_cast<absl::StatusCode>(statement.code); }

absl::string_view MessageOf(const Statement& statement) { return statement.message.data(); }

const Statement::Call* LastCall(const Statement& statement) {
  return statement.calls == 0 ? nullptr : &statement.recent[statement.calls - 1];
}

std::string LastText(const Statement& statement) {
  const Statement::Call* const call = LastCall(statement);
  return call == nullptr ? "no call" : call->text.data();
}

// True if `rank` was in a later call than `other`.
bool IsAhead(const Statement& rank, const Statement* other) {
  const Statement::Call* const own = LastCall(rank);
  return own != nullptr && other != nullptr && own->number > LastCall(*other)->number;
}

// Lists the ranks that make the same call, for each of the calls that differ. The shortest list comes first, because
// its ranks are likely the ones in error.
std::string Sides(std::map<std::string, std::vector<int>> ranks_of_text) {
  std::vector<std::pair<std::string, std::vector<int>>> sides(ranks_of_text.begin(), ranks_of_text.end());
  std::sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.second.size(), a.second) < std::make_pair(b.second.size(), b.second);
  });
  return absl::StrJoin(sides, ", ", [](std::string* text, const auto& side) {
    absl::StrAppend(text, RankList(side.second), " in ", side.first);
  });
}

}  // namespace

std::string RankList(const std::vector<int>& ranks) {
  std::string text = "rank ";
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const bool run = end - i > 3;
    if (!run) end = i + 1;
    absl::StrAppend(&text, i == 0 ? "" : ", ", ranks[i]);
    if (run) absl::StrAppend(&text, "-", ranks[end - 1]);
    i = end;
  }
  return text;
}

std::vector<CallLabel> CallHistory::Calls() const {
  std::vector<CallLabel> calls;
  for (size_t i = 1; i <= kCalls; ++i) {
    const CallLabel& call = calls_[(last_ + i) % kCalls];
    if (call.number > 0) calls.push_back(call);
  }
  return calls;
}

Statement FailureStatement(const CallHistory& history, const absl::Status& failure, absl::Time now) {
  Statement statement = {};
  statement.kind = absl::IsAborted(failure) ? Statement::Kind::kHeard : Statement::Kind::kFailure;
  statement.code = static_cast<int32_t>(failure.code());
  statement.in_call_us = absl::ToInt64Microseconds(now - history.begun());
  SetText(statement.message, failure.message());
  for (const CallLabel& label : history.Calls()) {
    Statement::Call& call = statement.recent[statement.calls++];
    call.number = label.number;
    call.fingerprint = label.Fingerprint();
    SetText(call.text, label.Text());
  }
  return statement;
}

Statement VerdictStatement(const absl::Status& verdict) {
  Statement statement = {};
  statement.kind = Statement::Kind::kVerdict;
  statement.code = static_cast<int32_t>(verdict.code());
  SetText(statement.message, verdict.message());
  return statement;
}

bool IsValid(const Statement& statement) {
  const auto is_text = [](const auto& text) { return text.back() == 0; };
  const auto kind = static_cast<int32_t>(statement.kind);
  return kind >= 0 && kind <= static_cast<int32_t>(Statement::Kind::kVerdict) && statement.code > 0 &&
         statement.code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated) &&
         statement.calls <= statement.recent.size() && is_text(statement.message) &&
         std::all_of(statement.recent.begin(), statement.recent.end(),
                     [&](const Statement::Call& call) { return is_text(call.text); });
}

absl::Status ReportedBy(int from, const Statement& statement) {
  return absl::AbortedError(absl::StrCat("rank ", from, " reported a failure: ", MessageOf(statement)));
}

void Settlement::Hear(int from, const Statement& statement) {
  if (!IsValid(statement)) return;
  if (statement.kind == Statement::Kind::kVerdict) {
    if (!verdict_.has_value()) verdict_ = absl::Status(CodeOf(statement), MessageOf(statement));
    return;
  }
  if (statements_[from] != nullptr) return;
  statements_[from] = std::make_unique<const Statement>(statement);
  if (first_ < 0) first_ = from;
}

bool Settlement::complete() const {
  if (verdict_.has_value()) return true;
  for (size_t rank = 0; rank < statements_.size(); ++rank) {
    if (statements_[rank] == nullptr && !left_[rank] && !lost_[rank]) return false;
  }
  return true;
}

bool Settlement::IsSpeaker(int rank) const {
  for (Statement::Kind kind : {Statement::Kind::kFailure, Statement::Kind::kHeard}) {
    for (size_t other = 0; other < statements_.size(); ++other) {
      if (statements_[other] != nullptr && statements_[other]->kind == kind) return static_cast<int>(other) == rank;
    }
  }
  return true;
}

absl::Status Settlement::Verdict() const {
  if (verdict_.has_value()) return *verdict_;
  if (std::optional<absl::Status> divergence = Divergence()) return *divergence;
  if (std::optional<absl::Status> absence = Absence()) return *absence;
  return FirstFailure();
}

// Reports the earliest call in which the ranks that remember it differ. Different call numbers alone mean nothing: a
// call may be over on one rank and not on others.
std::optional<absl::Status> Settlement::Divergence() const {
  struct Call {
    std::map<uint32_t, int> fingerprints;  // The value is the number of ranks that have it.
    std::map<std::string, std::vector<int>> ranks_of_text;
  };
  std::map<uint64_t, Call> calls;
  for (size_t rank = 0; rank < statements_.size(); ++rank) {
    if (statements_[rank] == nullptr) continue;
    for (size_t i = 0; i < statements_[rank]->calls; ++i) {
      const Statement::Call& made = statements_[rank]->recent[i];
      Call& call = calls[made.number];
      ++call.fingerprints[made.fingerprint];
      call.ranks_of_text[made.text.data()].push_back(static_cast<int>(rank));
    }
  }
  for (const auto& [number, call] : calls) {
    if (call.fingerprints.size() < 2) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Sides(call.ranks_of_text), "; all ranks must call the same operations in the same order"));
  }
  return std::nullopt;
}

// Reports ranks that left, made no statement, or entered the call late. Empty if no rank failed because of them.
std::optional<absl::Status> Settlement::Absence() const {
  std::vector<int> waited;
  // True if no rank ran into its deadline, so that the others saw at once that the absent ranks had gone. After a
  // deadline a rank that merely gave up also looks gone to others.
  bool gone = true;
  // The statement of the rank that waits in the earliest call. That is the call that the absent ranks missed.
  const Statement* earliest = nullptr;
  int64_t longest_us = 0;
  for (size_t rank = 0; rank < statements_.size(); ++rank) {
    const Statement* const said = statements_[rank].get();
    if (said == nullptr) continue;
    const absl::StatusCode code = CodeOf(*said);
    if (code != absl::StatusCode::kDeadlineExceeded && code != absl::StatusCode::kUnavailable &&
        code != absl::StatusCode::kInternal) {
      continue;
    }
    waited.push_back(static_cast<int>(rank));
    gone = gone && code != absl::StatusCode::kDeadlineExceeded;
    longest_us = std::max(longest_us, said->in_call_us);
    const Statement::Call* const call = LastCall(*said);
    if (call == nullptr) continue;
    if (earliest == nullptr || call->number < LastCall(*earliest)->number) earliest = said;
  }
  std::vector<int> left;
  std::vector<int> silent;
  std::vector<int> late;
  for (size_t rank = 0; rank < statements_.size(); ++rank) {
    const Statement* const said = statements_[rank].get();
    const int number = static_cast<int>(rank);
    if (said != nullptr) {
      // Late: it has been in the call for less than half as long as the rank that has waited longest.
      if (said->kind == Statement::Kind::kHeard && said->in_call_us < longest_us / 2 && !IsAhead(*said, earliest)) {
        late.push_back(number);
      }
    } else {
      (left_[rank] ? left : silent).push_back(number);
    }
  }
  if (waited.empty()) return std::nullopt;
  const std::string where =
      absl::StrCat(" in ", earliest == nullptr ? "a call" : LastText(*earliest), " (", RankList(waited), " waited)");
  if (!left.empty()) {
    return absl::UnavailableError(absl::StrCat("waited for ", RankList(left), ", which has left the group,", where));
  }
  if (!silent.empty() && gone) {
    return absl::UnavailableError(absl::StrCat("lost ", RankList(silent), where, ": ", FirstFailure().message()));
  }
  if (!silent.empty()) {
    return absl::DeadlineExceededError(
        absl::StrCat("waited until the deadline for ", RankList(silent), ", which did not come or got stuck", where));
  }
  if (!late.empty() && !gone) {
    return absl::DeadlineExceededError(
        absl::StrCat("waited until the deadline for ", RankList(late), ", which came later,", where));
  }
  return std::nullopt;
}

// Returns the error in the statement closest to the cause. A rank's own failure is closer than a deadline, a deadline
// closer than a peer's leaving. Ranks that only heard of a failure come last.
absl::Status Settlement::FirstFailure() const {
  const auto weight = [](const Statement& statement) {
    if (statement.kind == Statement::Kind::kHeard) return 0;
    const absl::StatusCode code = CodeOf(statement);
    return code == absl::StatusCode::kUnavailable ? 1 : code == absl::StatusCode::kDeadlineExceeded ? 2 : 3;
  };
  int chosen = -1;
  for (size_t rank = 0; rank < statements_.size(); ++rank) {
    if (statements_[rank] == nullptr) continue;
    if (chosen < 0 || weight(*statements_[rank]) > weight(*statements_[chosen])) chosen = static_cast<int>(rank);
  }
  if (chosen < 0) return absl::UnknownError("a collective failed, and no rank says why");
  const Statement& said = *statements_[chosen];
  const bool heard = said.kind == Statement::Kind::kHeard;
  return absl::Status(heard ? absl::StatusCode::kUnavailable : CodeOf(said),
                      absl::StrCat("rank ", chosen, " failed in ", LastText(said), ": ", MessageOf(said)));
}

}  // namespace hooke
