// ClusterState: which server is at an address, and which jobs follow a server to another address.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/shortened.h"

namespace hooke {
namespace {

// Pause between two dials of a server that was reached. Its address may become wrong while its heartbeats still come.
constexpr absl::Duration kDialAgain = absl::Seconds(30);

}  // namespace

void ClusterState::ServerDialed(const ServerDial& dial, const DialAnswer& answer, Instant now) {
  Server* found = servers_.Find(dial.server_id);
  if (found == nullptr || found->dial != dial.number) return;
  Server& server = *found;
  server.dial = 0;
  const DialVerdict verdict = JudgeDial(server.claim, answer, servers_.LiveServerAt(server.claim, now));
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
    effects_.LogDaemon(text, now);
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
  effects_.LogDaemon(absl::StrCat(text, ". Nothing is placed on it"), now);
  TellJobsOf(server.claim.server_id, text, now);
}

void ClusterState::TellJobsOf(const std::string& key, const std::string& text, Instant now) {
  for (auto& [number, job] : jobs_) {
    if (!HasEnded(job.record.state) && HasShardOn(job.record, key)) Notice(job, text, now);
  }
}

void ClusterState::ReplaceLostServers(Instant now) {
  const std::set<std::string> left = servers_.TakeLost(now);
  if (left.empty()) return;
  std::vector<const Server*> replacing;
  for (const auto& [key, server] : servers_) {
    if (server.reach != LiveServer::Reach::kReached || !servers_.IsAlive(server, now)) continue;
    if (left.count(server.claim.address) > 0) replacing.push_back(&server);
  }
  // A server that replaces another was reached, so it is none of the entries that FollowServer may erase.
  for (const Server* server : replacing) FollowServer(*server, now);
}

void ClusterState::FollowServer(const Server& server, Instant now) {
  const ServerClaim& claim = server.claim;
  // Returns whether the server with this key is gone for good. A job of that server would wait for it forever.
  const auto gone = [this](const std::string& key) {
    const Server* other = servers_.Find(key);
    return other == nullptr || other->lost;
  };
  for (auto& [number, job] : jobs_) {
    const bool ended = HasEnded(job.record.state);
    const bool has_its_shard =
        HasShardOn(job.record, claim.server_id);  // A server may hold at most one shard of a job.
    for (JobServer& shard : job.record.servers) {
      const bool moved = shard.id == claim.server_id && shard.address != claim.address;
      const bool here = shard.address == claim.address && !has_its_shard;
      if (moved || (here && (shard.id.empty() || (!ended && gone(shard.id))))) MoveShard(job, shard, server, now);
    }
  }
  // This entry stood for the server, by its address, in jobs that an older version stored.
  if (!IsInUse(claim.address)) servers_.Erase(claim.address);
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
    rooms_.Changed(group);
    job.live[group.group].retry_at = now.steady;
  }
  PlaceSoon();
  Store(job);
}

}  // namespace hooke
