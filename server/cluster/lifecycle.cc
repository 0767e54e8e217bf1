#include "server/cluster/lifecycle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "job/command.h"
#include "job/job_state.h"
#include "server/scheduling/causes.h"

namespace hooke {
namespace {

absl::Duration Backoff(const RestartOptions& options, uint32_t failures) {
  absl::Duration wait = options.first_backoff;
  for (uint32_t i = 1; i < failures && wait < options.longest_backoff; ++i) wait *= 2;
  return std::min(wait, options.longest_backoff);
}

std::string GroupName(const GroupRecord& group) {
  return group.task == v1::GroupStart::EVALUATE ? "the evaluation" : absl::StrCat("group ", group.group);
}

std::string AtStep(const GroupRecord& group, const GroupOutcome& outcome) {
  return group.task == v1::GroupStart::EVALUATE ? "" : absl::StrCat(" at step ", outcome.step);
}

// Returns a text such as "starts again in 4s as start 7, after 4 failures in a row". The start's number is the group's
// next incarnation.
std::string StartsAgain(const GroupRecord& group, absl::Duration wait, uint32_t failures) {
  const std::string when = wait > absl::ZeroDuration() ? absl::StrCat("in ", absl::FormatDuration(wait)) : "at once";
  return absl::StrCat("starts again ", when, " as start ", group.incarnation + 1,
                      failures > 1 ? absl::StrCat(", after ", failures, " failures in a row") : "");
}

std::string HeldText(const JobRecord& job, const GroupRecord& group) {
  return absl::StrCat(GroupName(group), " is ", group.reason, "; `hooke resume ", job.job_id, "` or `hooke cancel ",
                      job.job_id, "`");
}

std::string FailedInARow(const GroupRecord& group, uint32_t failures, absl::string_view last,
                         absl::string_view what_to_do) {
  return absl::StrCat(GroupName(group), " failed ", failures,
                      " times in a row without a new step; the last time: ", last, "; ", what_to_do,
                      ", then submit the job again");
}

}  // namespace

bool MendsItself(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
      return false;
    default:
      return true;
  }
}

GroupDecision AfterGroupEnd(const GroupRecord& group, const GroupOutcome& outcome, const RestartOptions& options) {
  GroupDecision decision;
  decision.best_step = std::max(group.best_step, outcome.step);
  std::string why = outcome.message.empty() ? "no message" : outcome.message;
  bool ok = outcome.ok;
  if (ok && group.task == v1::GroupStart::EVALUATE && !group.evaluated) {
    ok = false;
    why = "it ended without a result";
  }
  if (ok) {
    decision.state = v1::GROUP_STATE_FINISHED;
    decision.reason = "finished";
    return decision;
  }
  if (!outcome.ok && !MendsItself(outcome.code)) {
    decision.state = v1::GROUP_STATE_FAILED;
    decision.failures = group.failures + 1;
    decision.reason = absl::StrCat(GroupName(group), " failed", AtStep(group, outcome), ": ", why);
    if (group.task == v1::GroupStart::TRAIN && outcome.began_at.has_value() && outcome.step <= *outcome.began_at) {
      // A job that has trained does not fail because its groups cannot begin with their new number.
      decision.state = v1::GROUP_STATE_HELD;
      absl::StrAppend(&decision.reason, "; `hooke scale` with another number of groups lets the job go on");
    }
    return decision;
  }
  const uint32_t before = outcome.step > group.best_step ? 0 : group.failures;
  // A missing server is not the group's fault: the end lengthens the wait, but does not count as a failure.
  const bool lacks_server = !outcome.ok && outcome.server_failures > 0;
  decision.failures = before + (lacks_server ? 0 : 1);
  const bool new_step = outcome.step > group.best_step;
  if (lacks_server) {
    decision.cause = new_step ? "" : group.cause;
    decision.repeats = new_step ? 0 : group.repeats;
  } else if (!outcome.cause.empty()) {
    decision.cause = outcome.cause;
    decision.repeats = !new_step && outcome.cause == group.cause ? group.repeats + 1 : 1;
  }
  if (!lacks_server && decision.failures >= options.failures_max) {
    decision.state = v1::GROUP_STATE_FAILED;
    decision.reason = FailedInARow(group, decision.failures, why, "see its log (`hooke logs`) and mend that");
    return decision;
  }
  if (!lacks_server && options.repeats_max > 0 && decision.repeats >= options.repeats_max) {
    decision.state = v1::GROUP_STATE_HELD;
    decision.reason = absl::StrCat("held: it ended ", decision.repeats, " times in a row in the same way",
                                   AtStep(group, outcome), ": ", why);
    return decision;
  }
  const uint32_t row = lacks_server ? outcome.server_failures : decision.failures;
  decision.wait = Backoff(options, row);
  decision.reason = absl::StrCat("failed (", why, "); ", StartsAgain(group, decision.wait, row));
  return decision;
}

GroupDecision AfterGroupLost(const GroupRecord& group, const GroupLoss& loss, const RestartOptions& options) {
  GroupDecision decision;
  decision.best_step = std::max(group.best_step, loss.step);
  const bool new_row = loss.step > group.best_step || loss.worked >= options.steady_after;
  decision.failures = (new_row ? 0 : group.failures) + 1;
  if (decision.failures >= options.failures_max) {
    decision.state = v1::GROUP_STATE_FAILED;
    decision.reason = FailedInARow(group, decision.failures, absl::StrCat("lost, for ", loss.why),
                                   "see whether that node has enough memory and a steady network");
    return decision;
  }
  decision.wait = decision.failures == 1 ? absl::ZeroDuration() : Backoff(options, decision.failures - 1);
  decision.reason = absl::StrCat("lost (", loss.why, "); ", StartsAgain(group, decision.wait, decision.failures));
  return decision;
}

JobDecision AfterGroupChange(const JobRecord& job) {
  if (HasEnded(job.state)) return {};
  for (const GroupRecord& group : job.groups) {
    if (group.state == v1::GROUP_STATE_FAILED) return {v1::JOB_STATE_FAILED, group.reason, false};
  }
  const bool all_finished = std::all_of(job.groups.begin(), job.groups.end(), [](const GroupRecord& group) {
    return group.state == v1::GROUP_STATE_FINISHED;
  });
  if (all_finished) {
    if (HasCommand(job.spec)) return {v1::JOB_STATE_SUCCEEDED, "all groups have finished", false};
    if (job.groups.empty() || job.groups.back().task != v1::GroupStart::EVALUATE) {
      return {v1::JOB_STATE_EVALUATING, "all groups have finished; the center is being evaluated", true};
    }
    return {v1::JOB_STATE_SUCCEEDED, "all groups have finished and the center is evaluated", false};
  }
  const bool any_placed =
      std::any_of(job.groups.begin(), job.groups.end(), [](const GroupRecord& group) { return IsPlaced(group.state); });
  const bool any_waits = std::any_of(job.groups.begin(), job.groups.end(),
                                     [](const GroupRecord& group) { return group.state == v1::GROUP_STATE_WAITING; });
  const auto held = std::find_if(job.groups.begin(), job.groups.end(),
                                 [](const GroupRecord& group) { return group.state == v1::GROUP_STATE_HELD; });
  if (job.state != v1::JOB_STATE_HELD && held != job.groups.end() && !any_placed && !any_waits) {
    return {v1::JOB_STATE_HELD, HeldText(job, *held), false};
  }
  if (job.state == v1::JOB_STATE_QUEUED && any_placed) return {v1::JOB_STATE_RUNNING, "running", false};
  return {};
}

std::string CauseOfEnd(const GroupRecord& group, const GroupOutcome& outcome) {
  if (outcome.ok || outcome.code == absl::StatusCode::kCancelled) return "";
  std::vector<std::string> hosts;
  for (const GroupPart& part : group.parts) {
    hosts.push_back(part.worker);
    if (!part.address.empty()) hosts.push_back(part.address);
  }
  return CauseOf(outcome.code, outcome.message, hosts);
}

}  // namespace hooke
