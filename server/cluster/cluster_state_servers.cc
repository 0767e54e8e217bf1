// ClusterState: which server is at an address, and which jobs follow a server to another address.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"

namespace hooke {
namespace {

// Pause between two dials of a server that was reached. Its address may become wrong while its heartbeats still come.
constexpr absl::Duration kDialAgain = absl::Seconds(30);

}  // namespace

bool ClusterState::Uses(const JobRecord& job, const std::string& key) {
  return std::any_of(job.servers.begin(), job.servers.end(),
                     [&key](const JobServer& shard) { return KeyOf(shard) == key; });
}

std::string ClusterState::Refusal(const ServerClaim& claim, absl::string_view version, Instant now) {
  const auto known = servers_.find(claim.server_id);
  std::string why;
  if (known != servers_.end()) {
    const Server& server = known->second;
    why = ContestClaim(claim, server.claim, IsAlive(server, now), server.replaced_instance);
  }
  if (why.empty()) {
    refused_servers_.erase(claim.instance);
    return why;
  }
  if (refused_servers_.count(claim.instance) == 0 && refused_servers_.size() >= kNodesMax) return why;
  RefusedServer& refused = refused_servers_[claim.instance];
  if (refused.problem != why) LogDaemon(absl::StrCat("a server ", why), now);
  refused = {claim, Shortened(version, 64), why, now};
  return why;
}

void ClusterState::TakeClaim(Server& server, const ServerClaim& claim, Instant now) {
  const bool same_process = server.claim.instance == claim.instance;
  if (same_process && server.claim.address == claim.address) return;
  if (server.heard && !same_process) server.replaced_instance = server.claim.instance;
  if (server.claim.address != claim.address && server.silent) ServerAnswers(claim.server_id, server, now);
  server.claim = claim;
  server.reach = LiveServer::Reach::kBeingDialed;
  server.problem.clear();
  server.dial = 0;
  server.dial_at = now.steady;
  server.dial_failures = 0;
}

void ClusterState::DialIfDue(Server& server, Instant now) {
  if (server.dial != 0 || now.steady < server.dial_at || !IsAlive(server, now)) return;
  server.dial = next_dial_++;
  effects_.dials.push_back({server.claim.server_id, server.claim.address, server.dial});
}

void ClusterState::ServerDialed(const ServerDial& dial, const DialAnswer& answer, Instant now) {
  const auto found = servers_.find(dial.server_id);
  if (found == servers_.end() || found->second.dial != dial.number) return;
  Server& server = found->second;
  server.dial = 0;
  const DialVerdict verdict = JudgeDial(server.claim, answer, LiveServerAt(server.claim, now));
  if (verdict.what == DialVerdict::What::kReached) {
    ServerReached(server, now);
  } else {
    ServerFailed(server, verdict, now);
  }
  Place(now);
}

void ClusterState::ServerReached(Server& server, Instant now) {
  server.dial_failures = 0;
  server.dial_at = now.steady + kDialAgain;
  server.problem.clear();
  const bool failed_before = server.reach == LiveServer::Reach::kFailed;
  if (std::exchange(server.reach, LiveServer::Reach::kReached) != LiveServer::Reach::kReached) {
    const std::string text = absl::StrCat("server ", server.claim.address, " is reached at its address");
    LogDaemon(text, now);
    if (failed_before) TellJobsOf(server.claim.server_id, text, now);
  }
  FollowServer(server, now);
}

void ClusterState::ServerFailed(Server& server, const DialVerdict& verdict, Instant now) {
  server.dial_at = now.steady + PauseAfterDials(++server.dial_failures);
  const bool was_reached = server.reach == LiveServer::Reach::kReached;
  // If the server was reached before, one failed dial may come from a busy machine.
  if (was_reached && verdict.what == DialVerdict::What::kMaybe && server.dial_failures < 2) return;
  server.reach = LiveServer::Reach::kFailed;
  std::string problem = Shortened(verdict.problem);
  if (problem == server.problem) return;
  server.problem = std::move(problem);
  const std::string text = absl::StrCat("server ", ShortId(server.claim.server_id), " ", server.problem);
  LogDaemon(absl::StrCat(text, ". Nothing is placed on it"), now);
  TellJobsOf(server.claim.server_id, text, now);
}

void ClusterState::TellJobsOf(const std::string& key, const std::string& text, Instant now) {
  for (auto& [number, job] : jobs_) {
    if (!HasEnded(job.record.state) && Uses(job.record, key)) Notice(job, text, now);
  }
}

std::string ClusterState::LiveServerAt(const ServerClaim& claim, Instant now) const {
  for (const auto& [key, server] : servers_) {
    if (key != claim.server_id && server.claim.address == claim.address && IsAlive(server, now)) return key;
  }
  return "";
}

void ClusterState::ReplaceLostServers(Instant now) {
  std::set<std::string> left;  // The addresses of the servers that were lost just now.
  for (auto& [key, server] : servers_) {
    const absl::Duration silence = now.steady - server.last_heard.steady;
    const bool lost_before = std::exchange(server.lost, LivenessOf(silence, options_.liveness) == Liveness::kLost);
    if (server.lost && !lost_before) left.insert(server.claim.address);
  }
  if (left.empty()) return;
  std::vector<const Server*> replacing;
  for (const auto& [key, server] : servers_) {
    if (server.reach != LiveServer::Reach::kReached || !IsAlive(server, now)) continue;
    if (left.count(server.claim.address) > 0) replacing.push_back(&server);
  }
  // A server that replaces another was reached, so it is none of the entries that FollowServer may erase.
  for (const Server* server : replacing) FollowServer(*server, now);
}

void ClusterState::FollowServer(const Server& server, Instant now) {
  const ServerClaim& claim = server.claim;
  // Returns whether the server with this key is gone for good. A job of that server would wait for it forever.
  const auto gone = [this](const std::string& key) {
    const auto other = servers_.find(key);
    return other == servers_.end() || other->second.lost;
  };
  for (auto& [number, job] : jobs_) {
    const bool ended = HasEnded(job.record.state);
    const bool has_its_shard = Uses(job.record, claim.server_id);  // A server may hold at most one shard of a job.
    for (JobServer& shard : job.record.servers) {
      const bool moved = shard.id == claim.server_id && shard.address != claim.address;
      const bool here = shard.address == claim.address && !has_its_shard;
      if (moved || (here && (shard.id.empty() || (!ended && gone(shard.id))))) MoveShard(job, shard, server, now);
    }
  }
  // This entry stood for the server, by its address, in jobs that an older version stored.
  const auto placeholder = servers_.find(claim.address);
  if (placeholder != servers_.end() && !IsInUse(claim.address)) servers_.erase(placeholder);
}

void ClusterState::MoveShard(Job& job, JobServer& shard, const Server& server, Instant now) {
  const JobServer from = std::exchange(shard, {server.claim.server_id, server.claim.address});
  Store(job);
  if (HasEnded(job.record.state)) return;
  for (const GroupRecord& group : job.record.groups) {
    RemoveSilence(job, group, absl::StrCat("server ", from.address));
  }
  if (from.id.empty()) return;
  if (from.id == shard.id) {
    const std::string text = absl::StrCat("server ", from.address, " has moved to ", shard.address);
    Notice(job, text, now);
    return RestartGroups(job, text, now);
  }
  Notice(job,
         absl::StrCat("server ", shard.address, " is another one now, ", ShortId(shard.id), " in place of ",
                      ShortId(from.id), ", which has not answered for long: groups make the job's shard there again"),
         now);
}

// Starts the job's groups again, because a group knows only the addresses with which it was started. Under rule NONE a
// group keeps running: it needs its server only at its end, and a new start would lose its steps.
void ClusterState::RestartGroups(Job& job, const std::string& why, Instant now) {
  if (job.record.spec.averaging().rule() == v1::AveragingSpec::NONE) return;
  for (GroupRecord& group : job.record.groups) {
    // A group that was cut off starts again, too: it cannot go on with the old servers.
    job.live[group.group].cut_off.reset();
    if (!IsPlaced(group.state)) continue;
    StopParts(job, group, why);
    group.state = v1::GROUP_STATE_WAITING;
    group.reason = absl::StrCat("starts again: ", why);
    job.live[group.group].silences.clear();
    EstimateChanged(group);
    job.live[group.group].retry_at = now.steady;
  }
  PlaceSoon();
  Store(job);
}

}  // namespace hooke
