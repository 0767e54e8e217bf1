#include "server/cluster/server_table.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cluster/shortened.h"

namespace hooke {

void ServerTable::AddUnheard(const JobServer& shard, Instant now) {
  known::Server& server = servers_[KeyOf(shard)];
  server.claim.address = shard.address;
  server.last_heard = now;
}

void ServerTable::EraseOld(absl::FunctionRef<bool(const std::string& key)> is_in_use, Instant now) {
  const auto is_old = [now](Instant heard) { return now.steady - heard.steady > kForgetAfter; };
  for (auto it = servers_.begin(); it != servers_.end();) {
    it = is_old(it->second.last_heard) && !is_in_use(it->first) ? servers_.erase(it) : std::next(it);
  }
  for (auto it = refused_.begin(); it != refused_.end();) {
    it = is_old(it->second.last_heard) ? refused_.erase(it) : std::next(it);
  }
}

known::Server* ServerTable::Find(const std::string& key) {
  const auto server = servers_.find(key);
  return server == servers_.end() ? nullptr : &server->second;
}

const known::Server* ServerTable::Find(const std::string& key) const {
  const auto server = servers_.find(key);
  return server == servers_.end() ? nullptr : &server->second;
}

bool ServerTable::IsAlive(const known::Server& server, Instant now) const {
  return server.heard && LivenessOf(server.last_heard, now, liveness_) == Liveness::kAlive;
}

std::string ServerTable::Refuse(const ServerClaim& claim, absl::string_view version, Instant now, Effects& effects) {
  std::string why;
  if (const known::Server* server = Find(claim.server_id); server != nullptr) {
    why = ContestClaim(claim, server->claim, IsAlive(*server, now), server->replaced_instance);
  }
  if (why.empty()) {
    refused_.erase(claim.instance);
    return why;
  }
  if (refused_.count(claim.instance) == 0 && refused_.size() >= known::kNodesMax) return why;
  known::RefusedServer& refused = refused_[claim.instance];
  if (refused.problem != why) effects.LogDaemon(absl::StrCat("a server ", why), now);
  refused = {claim, Shortened(version, 64), why, now};
  return why;
}

void ServerTable::TakeClaim(known::Server& server, const ServerClaim& claim, Instant now) {
  const bool same_process = server.claim.instance == claim.instance;
  if (same_process && server.claim.address == claim.address) return;
  if (server.heard && !same_process) server.replaced_instance = server.claim.instance;
  server.claim = claim;
  server.reach = LiveServer::Reach::kBeingDialed;
  server.problem.clear();
  server.dial = 0;
  server.dial_at = now.steady;
  server.dial_failures = 0;
}

void ServerTable::DialIfDue(known::Server& server, Instant now, Effects& effects) {
  if (server.dial != 0 || now.steady < server.dial_at || !IsAlive(server, now)) return;
  server.dial = next_dial_++;
  effects.dials.push_back({server.claim.server_id, server.claim.address, server.dial});
}

std::string ServerTable::LiveServerAt(const ServerClaim& claim, Instant now) const {
  for (const auto& [key, server] : servers_) {
    if (key != claim.server_id && server.claim.address == claim.address && IsAlive(server, now)) return key;
  }
  return "";
}

std::set<std::string> ServerTable::TakeLost(Instant now) {
  std::set<std::string> addresses;
  for (auto& [key, server] : servers_) {
    const bool lost_before =
        std::exchange(server.lost, LivenessOf(server.last_heard, now, liveness_) == Liveness::kLost);
    if (server.lost && !lost_before) addresses.insert(server.claim.address);
  }
  return addresses;
}

ServerChoice ServerTable::Choose(uint32_t servers, Instant now) const {
  std::vector<LiveServer> live;
  for (const auto& [key, server] : servers_) {
    if (!IsAlive(server, now)) continue;
    live.push_back({server.claim.address, server.center_bytes, key == own_, server.reach, server.problem, key});
  }
  return ChooseServers(servers, live);
}

std::map<std::string, uint64_t> ServerTable::DiskBytes() const {
  std::map<std::string, uint64_t> bytes;
  for (const auto& [key, server] : servers_) {
    for (const auto& [job_id, of_shard] : server.disk_jobs) bytes[job_id] += of_shard;
  }
  return bytes;
}

std::vector<v1::NodeStatus> ServerTable::Statuses(Instant now) const {
  std::vector<v1::NodeStatus> nodes;
  const auto add = [&nodes](const ServerClaim& claim, const std::string& version, const std::string& problem,
                            Instant heard, bool alive) -> v1::NodeStatus& {
    v1::NodeStatus& node = nodes.emplace_back();
    node.set_kind(v1::NodeStatus::SERVER);
    node.set_name(claim.address);
    node.set_server_id(claim.server_id);
    node.set_version(version);
    node.set_problem(problem);
    node.set_last_heard_unix_ms(absl::ToUnixMillis(heard.wall));
    node.set_alive(alive);
    return node;
  };
  for (const auto& [key, server] : servers_) {
    v1::NodeStatus& node = add(server.claim, server.version, server.problem, server.last_heard, IsAlive(server, now));
    node.set_center_bytes(server.center_bytes);
    node.set_centers(server.centers);
    node.set_disk_centers(server.disk_centers);
    node.set_disk_bytes(server.disk_bytes);
    node.set_cores(server.cores);
    // The figures of a silent server are out of date, so they are left out.
    if (!node.alive()) continue;
    *node.mutable_exchanges() = server.exchanges;
    node.set_snapshot_age_seconds(server.snapshot_age_seconds);
  }
  for (const auto& [instance, server] : refused_) {
    const bool alive = LivenessOf(server.last_heard, now, liveness_) == Liveness::kAlive;
    add(server.claim, server.version, server.problem, server.last_heard, alive);
  }
  std::sort(nodes.begin(), nodes.end(), [](const v1::NodeStatus& a, const v1::NodeStatus& b) {
    return std::tie(a.name(), a.server_id()) < std::tie(b.name(), b.server_id());
  });
  return nodes;
}

std::vector<ServerFigures> ServerTable::Figures(Instant now) const {
  std::vector<ServerFigures> figures;
  for (const auto& [key, server] : servers_) {
    if (!server.heard) continue;
    figures.push_back({server.claim.address, server.claim.server_id, IsAlive(server, now),
                       server.reach == LiveServer::Reach::kReached, now.steady - server.last_heard.steady});
  }
  std::sort(figures.begin(), figures.end(),
            [](const ServerFigures& a, const ServerFigures& b) { return a.address < b.address; });
  return figures;
}

bool HasShardOn(const JobRecord& job, const std::string& key) {
  return std::any_of(job.servers.begin(), job.servers.end(),
                     [&key](const JobServer& shard) { return KeyOf(shard) == key; });
}

}  // namespace hooke
