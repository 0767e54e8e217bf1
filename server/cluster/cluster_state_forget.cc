// ClusterState: jobs that are forgotten, and their shards on servers.
//
// A mistaken sweep of a server's disk could cost weeks of computing. So a shard is freed for one reason only: this
// coordinator's own store has the trace of exactly that job, by id and by key. The trace was stored in the same
// transaction that removed the job's record. That a job is unknown is never a reason. The store may be new, or a copy
// of an earlier day, or the server may have belonged to another cluster. Such shards are named in the log, and stay.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/shortened.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

// A job stays known for at least this long after its end, unless a user forgets it. Meanwhile its servers and watchers
// learn of the end.
constexpr absl::Duration kEndIsTold = absl::Minutes(1);
// How often the coordinator checks whether finished jobs exceed KeepLimits.
constexpr absl::Duration kForgetEvery = absl::Seconds(1);
// The most jobs that are forgotten at once: each costs rows and files to remove.
constexpr size_t kForgottenAtOnce = 100;
// The most jobs that one line of the log names.
constexpr size_t kNamedMax = 20;

// Returns whether the job's servers and watchers have had time to learn of its end. When a server learns of the end, it
// frees the memory of the job's center. So a server that does not answer must come back first.
bool HaveHeardOfItsEnd(const known::Job& job, const ServerTable& servers, Instant now) {
  if (now.steady - job.ended_at < kEndIsTold) return false;
  const std::vector<JobServer>& shards = job.record.servers;
  return std::none_of(shards.begin(), shards.end(), [&](const JobServer& shard) {
    const known::Server* server = servers.Find(KeyOf(shard));
    return server != nullptr && server->silent;
  });
}

}  // namespace

absl::Status ClusterState::Forget(const std::string& job_id, Instant now) {
  Job* job = jobs_.Find(job_id);
  if (job == nullptr) return jobs_.CheckKnown(job_id);
  if (!HasEnded(job->record.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job_id, " has not ended: cancel it first, with `hooke cancel ", job_id, "`"));
  }
  ForgetJob(*job, "a user asked for it", now);
  return absl::OkStatus();
}

void ClusterState::ForgetJob(Job& job, absl::string_view why, Instant now) {
  const JobRecord& record = job.record;
  effects_.LogDaemon(
      absl::StrCat("job ", record.job_id, ", ended at ", UtcText(absl::FromUnixMillis(record.ended_unix_ms)),
                   ", is forgotten with its log, profiles and center: ", why),
      now);
  for (const GroupRecord& group : record.groups) rooms_.Changed(group);
  const ForgottenJob trace = jobs_.Forget(record.number);
  effects_.shown.insert(trace.job_id);  // Clients that watch the job then find that it is gone.
  effects_.forgotten[trace.job_id] = trace;
}

void ClusterState::ForgetOldJobs(Instant now) {
  if (now.steady < forget_at_) return;
  forget_at_ = now.steady + kForgetEvery;
  if (options_.keep.AreNumberOnly() && jobs_.size() <= options_.keep.jobs_max) return;
  const std::map<std::string, uint64_t> bytes = servers_.DiskBytes();
  std::vector<FinishedJob> finished;
  for (const auto& [number, job] : jobs_) {
    const JobRecord& record = job.record;
    if (!HasEnded(record.state)) continue;
    const auto on_disk = bytes.find(record.job_id);
    finished.push_back({number, now.steady - job.ended_at, on_disk == bytes.end() ? 0 : on_disk->second,
                        HaveHeardOfItsEnd(job, servers_, now)});
  }
  std::vector<ForgetDecision> decisions = ChooseForgotten(std::move(finished), options_.keep);
  decisions.resize(std::min(decisions.size(), kForgottenAtOnce));
  for (const ForgetDecision& decision : decisions) ForgetJob(*jobs_.FindNumber(decision.number), decision.reason, now);
}

void ClusterState::AddOrders(const Server& server, const v1::ServerHeartbeatRequest& request,
                             v1::ServerHeartbeatResponse& response) {
  const auto forget = [&](const std::string& job_id) {
    const ForgottenJob* forgotten = jobs_.FindForgotten(job_id);
    if (forgotten == nullptr) return;
    v1::ForgottenJob& message = *response.add_forgotten_jobs();
    message.set_job_id(forgotten->job_id);
    message.set_job_key(forgotten->job_key);
  };
  for (const std::string& job_id : request.jobs()) {
    const Job* job = jobs_.Find(job_id);
    // An unknown job may be from before the job store was lost. A new job must not get its id, because it would then
    // also get its center.
    if (job == nullptr) jobs_.ReserveNumbers(JobNumberOf(job_id));
    if (job != nullptr && HasEnded(job->record.state)) response.add_ended_jobs(job_id);
    // If the job was forgotten, a rank that had not heard of its end may have made the shard again.
    if (job == nullptr) forget(job_id);
  }
  for (const auto& [job_id, bytes] : server.disk_jobs) {
    if (jobs_.Find(job_id) == nullptr) forget(job_id);
  }
}

void ClusterState::ReportStrangers(Server& server, const v1::ServerHeartbeatRequest& request, Instant now) {
  std::set<std::string> strangers;
  const auto note = [&](const std::string& job_id) {
    if (jobs_.Find(job_id) == nullptr && jobs_.FindForgotten(job_id) == nullptr) strangers.insert(job_id);
  };
  for (const std::string& job_id : request.jobs()) note(job_id);
  for (const auto& [job_id, bytes] : server.disk_jobs) note(job_id);
  if (strangers == server.strangers) return;
  server.strangers = std::move(strangers);
  if (server.strangers.empty()) return;
  // A new job must not get the id of an unknown job, because it would then also get that job's center.
  for (const std::string& job_id : server.strangers) jobs_.ReserveNumbers(JobNumberOf(job_id));
  uint64_t bytes = 0;
  std::vector<std::string> named;
  for (const std::string& job_id : server.strangers) {
    const auto on_disk = server.disk_jobs.find(job_id);
    if (on_disk != server.disk_jobs.end()) bytes += on_disk->second;
    if (named.size() < kNamedMax) named.push_back(Shortened(job_id, 100));
  }
  effects_.LogDaemon(
      absl::StrCat("server ", request.address(), " holds shards of ", server.strangers.size(),
                   " jobs that this coordinator does not know, ", bytes, " bytes on disk: ", absl::StrJoin(named, ", "),
                   server.strangers.size() > named.size() ? ", ..." : "",
                   "; they stay, because only a job that was forgotten here is freed. If nobody needs them, "
                   "remove their files in `centers` of that server's --state-dir while it is stopped"),
      now);
}

}  // namespace hooke
