#include "server/records/job_records.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "proto/record.pb.h"

namespace hooke {
namespace {

constexpr size_t kNumberDigits = 20;  // Of the largest uint64_t.
constexpr char kGroup[] = "group/";
constexpr char kServers[] = "servers";
constexpr char kState[] = "state";
constexpr char kSubmission[] = "submission";

std::string GroupKeyText(size_t index) { return absl::StrFormat("%s%010d", kGroup, index); }

absl::Status Damaged(absl::string_view key, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("record ", key, " ", what));
}

template <typename Message>
absl::Status Parse(absl::string_view key, absl::string_view value, Message& message) {
  if (message.ParseFromArray(value.data(), static_cast<int>(value.size()))) return absl::OkStatus();
  return Damaged(key, "does not parse");
}

// Returns the number at the end of a key that begins with `prefix`.
absl::StatusOr<uint64_t> NumberIn(absl::string_view key, absl::string_view prefix) {
  const absl::string_view digits = key.substr(std::min(prefix.size(), key.size()));
  uint64_t number = 0;
  const bool right = digits.size() == kNumberDigits && std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
                     absl::SimpleAtoi(digits, &number);
  if (!right) return Damaged(key, "has no number where its key should have one");
  return number;
}

stored::Group ToMessage(const GroupRecord& group) {
  stored::Group message;
  message.set_task(group.task);
  message.set_state(group.state);
  message.set_reason(group.reason);
  for (const GroupPart& part : group.parts) {
    stored::Part* stored = message.add_parts();
    stored->set_worker(part.worker);
    stored->set_first_rank(part.first_rank);
    stored->set_ranks(part.ranks);
    stored->set_address(part.address);
    stored->set_last_event(part.last_event);
    stored->set_ended(part.ended);
  }
  message.set_site(group.site);
  message.set_incarnation(group.incarnation);
  message.set_failures(group.failures);
  message.set_best_step(group.best_step);
  message.set_evaluated(group.evaluated);
  message.set_is_new(group.is_new);
  message.set_exchanged_step(group.exchanged_step);
  message.set_cause(group.cause);
  message.set_repeats(group.repeats);
  for (const PackedStart& start : group.starts) *message.add_starts() = start.Unpack();
  if (!group.end_progress.empty()) message.mutable_progress()->ParseFromString(group.end_progress);
  *message.mutable_last_lines() = {group.last_lines.begin(), group.last_lines.end()};
  return message;
}

absl::Status AddGroup(absl::string_view key, absl::string_view value, JobRecord& job) {
  // The keys come in order, so a gap is a group that is missing.
  const std::string expected = absl::StrCat(JobPrefix(job.number), GroupKeyText(job.groups.size()));
  if (key != expected) return Damaged(expected, "is missing");
  stored::Group message;
  if (absl::Status status = Parse(key, value, message); !status.ok()) return status;
  GroupRecord group;
  group.group = static_cast<uint32_t>(job.groups.size());
  group.task = message.task();
  group.state = message.state();
  if (!v1::GroupStart::Task_IsValid(group.task) || group.task == v1::GroupStart::TASK_UNSPECIFIED) {
    return Damaged(key, absl::StrCat("has the unknown task ", group.task));
  }
  if (!v1::GroupState_IsValid(group.state) || group.state == v1::GROUP_STATE_UNSPECIFIED) {
    return Damaged(key, absl::StrCat("has the unknown state ", group.state));
  }
  group.reason = message.reason();
  for (const stored::Part& part : message.parts()) {
    group.parts.push_back(
        {part.worker(), part.first_rank(), part.ranks(), part.address(), part.last_event(), part.ended()});
  }
  group.site = message.site();
  group.incarnation = message.incarnation();
  group.failures = message.failures();
  group.best_step = message.best_step();
  group.evaluated = message.evaluated();
  group.is_new = message.is_new();
  group.exchanged_step = message.exchanged_step();
  group.cause = message.cause();
  group.repeats = message.repeats();
  for (const v1::StartTimes& start : message.starts()) group.starts.emplace_back(start);
  if (message.has_progress()) group.end_progress = message.progress().SerializeAsString();
  group.last_lines = {message.last_lines().begin(), message.last_lines().end()};
  job.groups.push_back(std::move(group));
  return absl::OkStatus();
}

absl::Status AddServers(absl::string_view key, absl::string_view value, JobRecord& job) {
  stored::ServerList message;
  absl::Status status = Parse(key, value, message);
  for (const stored::Server& server : message.servers()) job.servers.push_back({server.id(), server.address()});
  return status;
}

absl::Status SetState(absl::string_view key, absl::string_view value, JobRecord& job) {
  stored::State message;
  if (absl::Status status = Parse(key, value, message); !status.ok()) return status;
  job.state = message.state();
  if (!v1::JobState_IsValid(job.state) || job.state == v1::JOB_STATE_UNSPECIFIED) {
    return Damaged(key, absl::StrCat("has the unknown state ", job.state));
  }
  job.reason = message.reason();
  job.started_unix_ms = message.started_unix_ms();
  job.first_step_unix_ms = message.first_step_unix_ms();
  job.ended_unix_ms = message.ended_unix_ms();
  if (message.has_center()) job.center = message.center();
  const stored::Generations& generations = message.generations();
  if (generations.has_wanted()) job.generations.wanted = generations.wanted();
  job.generations.earlier.assign(generations.earlier().begin(), generations.earlier().end());
  job.generations.first_step = generations.first_step();
  job.generations.first_incarnation = generations.first_incarnation();
  return absl::OkStatus();
}

void AddGenerations(const Generations& from, stored::State& state) {
  if (!from.wanted.has_value() && from.earlier.empty()) return;
  stored::Generations& generations = *state.mutable_generations();
  if (from.wanted.has_value()) *generations.mutable_wanted() = *from.wanted;
  for (const v1::Generation& earlier : from.earlier) *generations.add_earlier() = earlier;
  generations.set_first_step(from.first_step);
  generations.set_first_incarnation(from.first_incarnation);
}

absl::Status SetSubmission(absl::string_view key, absl::string_view value, JobRecord& job) {
  stored::Submission message;
  if (absl::Status status = Parse(key, value, message); !status.ok()) return status;
  job.job_id = message.job_id();
  job.submission_id = message.submission_id();
  job.submitted_unix_ms = message.submitted_unix_ms();
  job.preparing_us = message.preparing_us();
  job.upload_us = message.upload_us();
  job.spec = std::move(*message.mutable_spec());
  return absl::OkStatus();
}

}  // namespace

std::string FormatRecord() {
  stored::Format format;
  format.set_version(kRecordFormat);
  return format.SerializeAsString();
}

absl::Status CheckFormat(absl::string_view value) {
  stored::Format format;
  if (absl::Status status = Parse(kFormatKey, value, format); !status.ok()) return status;
  if (format.version() == kRecordFormat) return absl::OkStatus();
  if (format.version() < kRecordFormat) return Damaged(kFormatKey, absl::StrCat("is ", format.version()));
  return absl::FailedPreconditionError(absl::StrCat("has format ", format.version(),
                                                    ", this hooke-server knows format ", kRecordFormat,
                                                    ": start the version of Hooke that wrote it"));
}

std::string JobPrefix(uint64_t number) { return absl::StrFormat("%s%020d/", kJobsPrefix, number); }
bool IsGroupKey(uint64_t number, absl::string_view key) {
  return absl::StartsWith(key, absl::StrCat(JobPrefix(number), kGroup));
}
std::string HistoryPrefix(uint64_t number) { return absl::StrFormat("%s%020d/", kHistoriesPrefix, number); }

Records RecordsOf(const JobRecord& job) {
  stored::Submission submission;
  submission.set_job_id(job.job_id);
  submission.set_submission_id(job.submission_id);
  submission.set_submitted_unix_ms(job.submitted_unix_ms);
  submission.set_preparing_us(job.preparing_us);
  submission.set_upload_us(job.upload_us);
  *submission.mutable_spec() = job.spec;
  stored::State state;
  state.set_state(job.state);
  state.set_reason(job.reason);
  state.set_started_unix_ms(job.started_unix_ms);
  state.set_first_step_unix_ms(job.first_step_unix_ms);
  state.set_ended_unix_ms(job.ended_unix_ms);
  if (job.center.has_value()) *state.mutable_center() = *job.center;
  AddGenerations(job.generations, state);
  stored::ServerList servers;
  for (const JobServer& server : job.servers) {
    stored::Server* stored = servers.add_servers();
    stored->set_id(server.id);
    stored->set_address(server.address);
  }
  const std::string prefix = JobPrefix(job.number);
  Records records;
  for (const GroupRecord& group : job.groups) {
    records[absl::StrCat(prefix, GroupKeyText(group.group))] = ToMessage(group).SerializeAsString();
  }
  records[absl::StrCat(prefix, kServers)] = servers.SerializeAsString();
  records[absl::StrCat(prefix, kState)] = state.SerializeAsString();
  records[absl::StrCat(prefix, kSubmission)] = submission.SerializeAsString();
  return records;
}

absl::StatusOr<JobRecord> JobFrom(const Records& records) {
  const std::string& first = records.begin()->first;
  absl::StatusOr<uint64_t> number = NumberIn(absl::string_view(first).substr(0, JobPrefix(0).size() - 1), kJobsPrefix);
  if (!number.ok()) return Damaged(first, "has no number where its key should have one");
  const std::string prefix = JobPrefix(*number);
  JobRecord job;
  job.number = *number;
  bool has_state = false, has_submission = false;
  for (const auto& [key, value] : records) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, prefix)) return Damaged(key, "is not named like a record of a job");
    absl::Status status;
    if (absl::StartsWith(name, kGroup)) {
      status = AddGroup(key, value, job);
    } else if (name == kServers) {
      status = AddServers(key, value, job);
    } else if (name == kState) {
      has_state = true;
      status = SetState(key, value, job);
    } else if (name == kSubmission) {
      has_submission = true;
      status = SetSubmission(key, value, job);
    }
    if (!status.ok()) return status;
  }
  if (!has_state) return Damaged(absl::StrCat(prefix, kState), "is missing");
  if (!has_submission) return Damaged(absl::StrCat(prefix, kSubmission), "is missing");
  return job;
}

std::string ForgottenKey(uint64_t number) { return absl::StrFormat("%s%020d", kForgottenPrefix, number); }

std::string ForgottenRecord(const ForgottenJob& job) {
  stored::ForgottenJob message;
  message.set_job_id(job.job_id);
  message.set_job_key(job.job_key);
  return message.SerializeAsString();
}

absl::StatusOr<ForgottenJob> ForgottenFrom(absl::string_view key, absl::string_view value) {
  absl::StatusOr<uint64_t> number = NumberIn(key, kForgottenPrefix);
  if (!number.ok()) return number.status();
  stored::ForgottenJob message;
  if (absl::Status status = Parse(key, value, message); !status.ok()) return status;
  return ForgottenJob{message.job_id(), *number, message.job_key()};
}

std::string DrainKey(absl::string_view worker) { return absl::StrCat(kDrainsPrefix, worker, "/"); }

std::string DrainRecord(const WorkerDrain& drain) {
  stored::WorkerDrain message;
  message.set_worker(drain.worker);
  message.set_drain(drain.drain);
  return message.SerializeAsString();
}

absl::StatusOr<WorkerDrain> DrainFrom(absl::string_view key, absl::string_view value) {
  stored::WorkerDrain message;
  if (absl::Status status = Parse(key, value, message); !status.ok()) return status;
  if (key != DrainKey(message.worker())) return Damaged(key, "names another worker than its key");
  if (message.drain() != v1::DRAIN_FINISH && message.drain() != v1::DRAIN_NOW) {
    return Damaged(key, absl::StrCat("has the unknown drain ", message.drain()));
  }
  return WorkerDrain{message.worker(), message.drain()};
}

std::string UseKey(absl::string_view owner) { return absl::StrCat(kUsesPrefix, owner, "/"); }

std::string UseRecord(const OwnerUse& use) {
  stored::OwnerUse message;
  message.set_owner(use.owner);
  message.set_slot_seconds(use.slot_seconds);
  message.set_unix_ms(use.unix_ms);
  return message.SerializeAsString();
}

absl::StatusOr<OwnerUse> UseFrom(absl::string_view key, absl::string_view value) {
  stored::OwnerUse message;
  if (absl::Status status = Parse(key, value, message); !status.ok()) return status;
  if (key != UseKey(message.owner())) return Damaged(key, "names another owner than its key");
  if (!std::isfinite(message.slot_seconds()) || message.slot_seconds() < 0) return Damaged(key, "has no valid use");
  return OwnerUse{message.owner(), message.slot_seconds(), message.unix_ms()};
}

}  // namespace hooke
