#ifndef HOOKE_CLIENT_TEXT_JOB_TEXT_H_
#define HOOKE_CLIENT_TEXT_JOB_TEXT_H_

// Words for the parts of a job's status. Every view uses the same words. Pure.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/text/terminal_text.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// Examples: "0:42", "1:02:03". A negative duration gives "0:00".
std::string DurationText(absl::Duration duration);
std::string PercentText(double fraction);  // Example: "90.12 %".

// Returns "group 1", or "the evaluation" for the evaluating group.
std::string GroupText(const v1::GroupStatus& group);

// Examples: "w1 (hpc)", "w1 (ranks 0-1) and w2 (ranks 2-3) (hpc)"; empty while the group is not placed.
std::string PlaceText(const v1::GroupStatus& group);

// The group's step. It is "-" if the group has not reported one since the coordinator started.
std::string StepText(const v1::GroupStatus& group);

// Example: "rank 1 (pid 4711) of group 0 has not answered since 12:03:04 (6 s), at step 120".
std::string SilenceText(const v1::GroupStatus& group, const v1::Silence& silence, absl::Time now, absl::TimeZone zone);

// A peer of a job that does not answer, such as a rank, a launcher or a server. A server that several groups miss is
// one silence.
struct JobSilence {
  std::string key;   // Identifies the silence; stays the same over time.
  std::string who;   // Example: "rank 1 (pid 4711) of group 0".
  std::string what;  // Like `who`, but without the group: "rank 1 (pid 4711)".
  int64_t since_unix_ms = 0;
  std::string text;
};
std::vector<JobSilence> Silences(const v1::JobStatus& job, absl::Time now, absl::TimeZone zone);

// Example: "compute 82 %, collective 15 %, exchange 3 %"; empty while all times are 0.
std::string SharesText(const v1::RankProgress& progress);

// Time until the last running group is done. nullopt: the job does not run, or runs a command, or a group waits, starts
// or does not move.
std::optional<absl::Duration> TimeLeft(const v1::JobStatus& job);

// Example: "exchanging with 1 of 2 servers since 12:03:04 (without 10.0.0.2:7411)". The time is when the first group
// missed it. If groups miss different servers, there is "group 0 exchanging with ..." for each group. Empty if no group
// misses a server.
std::string AbsentText(const v1::JobStatus& job, absl::TimeZone zone);

// Returns a line about the job's last setback, the return of a part of the center to a snapshot. It explains why the
// loss rose. Example: "12:03:04  server b:2 came back from its snapshot ...". The view shows the job's notices from
// number `first_shown` on. Returns "" if there is no setback, or if that first notice is not newer than the setback.
std::string OlderSetbackText(const v1::JobStatus& job, int first_shown, absl::TimeZone zone);

// Examples: "test accuracy 88.12 % at epoch 1.00, loss 0.3333", "at epoch 1.00, perplexity 21.5".
std::string CenterText(const v1::CenterEvaluated& center);

// Returns ": REASON", or "" if the reason only repeats the state.
std::string ReasonText(absl::string_view state, absl::string_view reason);

// Example: "lenet, 2 groups x 2 ranks, elastic every 16 steps".
std::string SpecText(const v1::JobSpec& spec);
// Examples: "diloco every 64 steps in 4 fragments, delayed by 8, int8", "no averaging". CompressionText returns the
// last part, like "int8" or "none".
std::string AveragingText(const v1::AveragingSpec& spec);
std::string CompressionText(const v1::AveragingSpec& spec);

// Examples: "running for 0:42", "succeeded after 1:32", "failed after 0:12: REASON", "queued for 0:03: REASON".
std::string JobProgressText(const v1::JobStatus& job, absl::Time now);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_JOB_TEXT_H_
