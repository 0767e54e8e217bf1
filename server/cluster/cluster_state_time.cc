// ClusterState: ticks and servers.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/job_state.h"
#include "server/cluster/choose_servers.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/next_generation.h"
#include "server/cluster/shortened.h"
#include "wire/host_port.h"
#include "wire/utc_time.h"

namespace hooke {
namespace {

constexpr int kJobsPerServerMax = 100000;
constexpr int kGroupsMax = 1024;  // The most groups in a ClosedGeneration.

// Returns a number that a server has sent, or 0 if it says nothing.
double Figure(double sent) { return std::isfinite(sent) ? std::max(0.0, sent) : 0; }

v1::ExchangeFigures FiguresOf(const v1::ExchangeFigures& sent) {
  v1::ExchangeFigures figures;
  figures.set_messages_per_second(Figure(sent.messages_per_second()));
  figures.set_received_bytes_per_second(Figure(sent.received_bytes_per_second()));
  figures.set_sent_bytes_per_second(Figure(sent.sent_bytes_per_second()));
  figures.set_median_ms(Figure(sent.median_ms()));
  figures.set_p99_ms(Figure(sent.p99_ms()));
  return figures;
}

absl::Status CheckIdentity(const v1::ServerHeartbeatRequest& request) {
  if (request.server_id().empty()) {
    return absl::FailedPreconditionError(
        "this hooke-server is older than its coordinator, which knows servers by an identity: start it in the "
        "coordinator's version");
  }
  for (const std::string& id : {request.server_id(), request.instance()}) {
    if (!id.empty() && id.size() <= 64 && id.find(':') == id.npos) continue;
    return absl::InvalidArgumentError("a server's identity and instance have 1 to 64 bytes and no colon");
  }
  return absl::OkStatus();
}

absl::Status CheckClosed(const v1::ServerHeartbeatRequest& request) {
  if (request.closed_size() > kGenerationEndsMax) {
    return absl::InvalidArgumentError(absl::StrCat("a server answers about ", request.closed_size(), " generations"));
  }
  for (const v1::ClosedGeneration& closed : request.closed()) {
    if (closed.groups_size() <= kGroupsMax) continue;
    return absl::InvalidArgumentError(absl::StrCat("a server's answer about job ", Shortened(closed.job_id(), 80),
                                                   " has more than ", kGroupsMax, " groups"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ServerHeartbeatResponse> ClusterState::ServerHeartbeat(const v1::ServerHeartbeatRequest& request,
                                                                          Instant now) {
  if (absl::Status status = CheckIdentity(request); !status.ok()) return status;
  if (absl::Status status = CheckDialAddress(request.address()); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("a server's address: ", Shortened(status.message(), 200)));
  }
  if (std::max(request.jobs_size(), request.disk_jobs_size()) > kJobsPerServerMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a server lists ", std::max(request.jobs_size(), request.disk_jobs_size()), " jobs"));
  }
  if (absl::Status status = CheckClosed(request); !status.ok()) return status;
  if (servers_.Find(request.server_id()) == nullptr && servers_.size() >= known::kNodesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the coordinator knows ", known::kNodesMax, " servers, and takes no more"));
  }
  const ServerClaim claim = {request.server_id(), request.instance(), request.address()};
  v1::ServerHeartbeatResponse response;
  if (std::string why = servers_.Refuse(claim, request.version(), now, effects_); !why.empty()) {
    response.set_problem(std::move(why));
    return response;
  }
  Server& server = servers_.Add(request.server_id());
  if (server.silent && server.claim.address != claim.address) ServerAnswers(claim.server_id, server, now);
  ServerTable::TakeClaim(server, claim, now);
  const bool is_new = !std::exchange(server.heard, true);
  server.version = Shortened(request.version(), 64);
  server.center_bytes = request.center_bytes();
  server.centers = static_cast<uint32_t>(request.jobs_size());
  server.disk_centers = request.disk_centers();
  server.disk_bytes = request.disk_bytes();
  server.cores = Figure(request.cores());
  server.exchanges = FiguresOf(request.exchanges());
  server.snapshot_age_seconds = Figure(request.snapshot_age_seconds());
  server.last_heard = now;
  if (is_new) {
    effects_.LogDaemon(absl::StrCat("server ", request.address(), " joined, identity ", ShortId(request.server_id())),
                       now);
    Place(now);
  }
  if (server.silent) ServerAnswers(request.server_id(), server, now);
  servers_.DialIfDue(server, now, effects_);
  response.set_problem(server.problem);
  if (request.lists_disk_jobs()) {
    server.disk_jobs.clear();
    for (const v1::DiskJob& job : request.disk_jobs()) server.disk_jobs[job.job_id()] = job.bytes();
    ReportStrangers(server, request, now);
  }
  AddOrders(server, request, response);
  TakeClosed(request.server_id(), request, now);
  AddGenerationEnds(request.server_id(), response);
  return response;
}

void ClusterState::Tick(Instant now) {
  // While this process was stopped, it could hear nobody. For that time, workers and servers must not count as silent.
  const absl::Duration gap = UnlistenedGap(now.steady - std::exchange(last_tick_, now.steady));
  if (gap != absl::ZeroDuration()) {
    effects_.LogDaemon(absl::StrCat("the coordinator was stopped: ", absl::FormatDuration(gap),
                                    " between two ticks; leases move by as much"),
                       now);
    for (auto& [name, worker] : workers_) {
      worker.last_heard += std::min(gap, now.steady - worker.last_heard.steady);
      rooms_.Changed(worker.name);
    }
    for (auto& [address, server] : servers_) server.last_heard += std::min(gap, now.steady - server.last_heard.steady);
  }
  CheckWorkers(now);
  CheckParts(now);
  CheckServers(now);
  SayLastWords(now);
  if (now.steady >= place_at_) Place(now);
  ForgetOldJobs(now);
}

void ClusterState::CheckWorkers(Instant now) {
  for (const std::string& name : workers_.TakeDue(now.steady)) {
    Worker* found = workers_.Find(name);
    if (found == nullptr) continue;
    Worker& worker = *found;
    CheckWorker(worker, now);
    if (WorkerTable::IsForgotten(worker, now)) {
      rooms_.Changed(name);
      workers_.Erase(name);
    } else {
      workers_.Expect(worker);
    }
  }
}

void ClusterState::CheckWorker(Worker& worker, Instant now) {
  const Liveness liveness = LivenessOf(worker.last_heard, now, options_.liveness);
  if (liveness != Liveness::kAlive && !worker.silent) WorkerSilent(worker, now);
  if (liveness != Liveness::kLost || worker.lost) return;
  const std::string why = absl::StrCat("worker ", worker.name, " has not answered since ",
                                       UtcText(worker.last_heard.wall), ", longer than its lease");
  effects_.LogDaemon(absl::StrCat(why, ": lost"), now);
  LoseWorker(worker, why, Groups::kMayLive, now);
}

void ClusterState::WorkerSilent(Worker& worker, Instant now) {
  worker.silent = true;
  rooms_.Changed(worker.name);
  const std::string what = absl::StrCat("worker ", worker.name);
  const std::string text = absl::StrCat(what, " has not answered since ", UtcText(worker.last_heard.wall));
  effects_.LogDaemon(text, now);
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    bool told = false;
    for (const GroupRecord& group : job.record.groups) {
      if (PartOn(group, worker.name) == nullptr || !IsPlaced(group.state)) continue;
      AddSilence(job, group, what, worker.last_heard);
      if (!std::exchange(told, true)) {
        Notice(job, absl::StrCat(text, "; group ", group.group, " was at step ", job.live[group.group].progress.step()),
               now);
      }
    }
  }
}

void ClusterState::LoseWorker(Worker& worker, const std::string& why, Groups groups, Instant now) {
  worker.lost = true;
  workers_.Expect(worker);
  rooms_.Changed(worker.name);
  if (worker.session != 0) {
    effects_.closed[worker.session] = why;
    workers_.EndSession(worker);
  }
  worker.occupants.clear();
  worker.unconfirmed.clear();
  bool noted = false;  // A lost worker is one death, however many groups it ran.
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state)) continue;
    for (GroupRecord& group : job.record.groups) {
      const GroupPart* part = PartOn(group, worker.name);
      if (part == nullptr || part->ended || !IsPlaced(group.state)) continue;
      if (!std::exchange(noted, true)) NoteDeath(worker, {job.record.job_id, group.group, now.steady, why}, now);
      groups == Groups::kMayLive ? GiveUp(job, group, worker, why, now) : LoseGroup(job, group, why, now);
    }
  }
}

void ClusterState::CheckServers(Instant now) {
  for (auto& [key, server] : servers_) {
    if (LivenessOf(server.last_heard, now, options_.liveness) != Liveness::kAlive && !server.silent) {
      ServerSilent(key, server, now);
    }
    servers_.DialIfDue(server, now, effects_);
  }
  servers_.EraseOld([this](const std::string& key) { return IsInUse(key); }, now);
  ReplaceLostServers(now);
}

bool ClusterState::IsInUse(const std::string& key) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& numbered) {
    const JobRecord& job = numbered.second.record;
    return !HasEnded(job.state) && HasShardOn(job, key);
  });
}

void ClusterState::ServerSilent(const std::string& key, Server& server, Instant now) {
  server.silent = true;
  const std::string what = absl::StrCat("server ", server.claim.address);
  const std::string text = absl::StrCat(what, " has not answered since ", UtcText(server.last_heard.wall));
  effects_.LogDaemon(text, now);
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state) || !HasShardOn(job.record, key)) continue;
    uint64_t step = 0;
    for (const GroupRecord& group : job.record.groups) {
      step = std::max(step, job.live[group.group].progress.step());
      if (IsPlaced(group.state)) AddSilence(job, group, what, server.last_heard);
    }
    Notice(job, absl::StrCat(text, "; the furthest group is at step ", step), now);
  }
}

void ClusterState::ServerAnswers(const std::string& key, Server& server, Instant now) {
  server.silent = false;
  const std::string what = absl::StrCat("server ", server.claim.address);
  effects_.LogDaemon(absl::StrCat(what, " answers again"), now);
  for (auto& [number, job] : jobs_) {
    if (HasEnded(job.record.state) || !HasShardOn(job.record, key)) continue;
    for (const GroupRecord& group : job.record.groups) RemoveSilence(job, group, what);
    Notice(job, absl::StrCat(what, " answers again"), now);
  }
}

void ClusterState::AddSilence(Job& job, const GroupRecord& group, const std::string& what, Instant since) {
  RemoveSilence(job, group, what);
  v1::Silence silence;
  silence.set_what(what);
  silence.set_since_unix_ms(absl::ToUnixMillis(since.wall));
  silence.set_step(job.live[group.group].progress.step());
  job.live[group.group].silences.push_back(std::move(silence));
}

void ClusterState::RemoveSilence(Job& job, const GroupRecord& group, const std::string& what) {
  std::vector<v1::Silence>& silences = job.live[group.group].silences;
  silences.erase(
      std::remove_if(silences.begin(), silences.end(), [&](const v1::Silence& s) { return s.what() == what; }),
      silences.end());
  rooms_.Changed(group);
  Changed(job);
}

void ClusterState::FixServers(Job& job, Instant now) {
  if (!job.record.servers.empty()) return;
  ServerChoice choice = servers_.Choose(job.record.spec.averaging().servers(), now);
  const auto address = [](std::string* text, const JobServer& server) { absl::StrAppend(text, server.address); };
  effects_.Log(job.record.job_id,
               absl::StrCat("center on ", absl::StrJoin(choice.servers, ", ", address), ": ", choice.reason), now);
  job.record.servers = std::move(choice.servers);
}

}  // namespace hooke
