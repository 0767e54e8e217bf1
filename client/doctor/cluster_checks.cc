#include "client/doctor/cluster_checks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/doctor/value_text.h"
#include "client/text/job_text.h"

namespace hooke {
namespace {

constexpr absl::Duration kSlowAnswer = absl::Milliseconds(200);
constexpr absl::Duration kLongWait = absl::Minutes(1);
constexpr absl::Duration kClockMax = absl::Seconds(2);
constexpr absl::Duration kHeartbeat = absl::Seconds(2);  // A heartbeat comes every second, and may be late by one.
constexpr size_t kShown = 5;                             // At most so many nodes with one trouble are named.

std::string NodeText(const v1::NodeStatus& node) {
  return absl::StrCat(node.kind() == v1::NodeStatus::WORKER ? "worker " : "server ", node.name());
}

std::string SomeOf(std::vector<std::string> all) {
  const size_t left_out = all.size() - std::min(all.size(), kShown);
  all.resize(all.size() - left_out);
  return absl::StrCat(absl::StrJoin(all, ", "), left_out > 0 ? absl::StrCat(" and ", left_out, " more") : "");
}

Finding CheckToken(const ClusterValues& cluster) {
  const std::string check = "token";
  if (!cluster.token.ok()) {
    return Fault(check, std::string(cluster.token.message()),
                 {absl::StrCat("ls -l ", cluster.token_file, "    # it must be yours, with mode 600 and one line; ",
                               "copy it from another machine of the cluster")});
  }
  if (absl::IsUnauthenticated(cluster.answered)) {
    return Fault(check, std::string(cluster.answered.message()),
                 {"copy the token file of the coordinator's machine here, with mode 600",
                  "export HOOKE_TOKEN_FILE=~/.hooke/token    # or give --token-file"});
  }
  if (cluster.token_file.empty()) return Ok(check, "none is given, and the cluster wants none");
  return Ok(check, absl::StrCat(cluster.token_file, " is readable and private"));
}

Finding CheckCoordinator(const ClusterValues& cluster) {
  const std::string check = "coordinator";
  const std::string who = absl::StrCat(cluster.address, " (", cluster.source, ")");
  const absl::Status& status = cluster.connected.ok() ? cluster.answered : cluster.connected;
  if (absl::IsUnauthenticated(status)) return Ok(check, absl::StrCat(who, " answers, but refuses this token"));
  if (!status.ok()) {
    return Fault(
        check, std::string(status.message()),
        {absl::StrCat("is it alive? on its machine: `ss -ltnp | grep ",
                      cluster.address.substr(cluster.address.rfind(':')), "`, `ps -o pid,stat,args -C hooke-server`"),
         "a process in state T is stopped: `kill -CONT PID`; one that is gone: start hooke-server, or `hooke "
         "up`"});
  }
  const std::string found =
      absl::StrCat(who, " answers in ", absl::FormatDuration(absl::Trunc(cluster.round_trip, absl::Microseconds(10))));
  if (cluster.round_trip < kSlowAnswer) return Ok(check, found);
  return Warning(check, found,
                 {absl::StrCat("`ping ", cluster.address.substr(0, cluster.address.rfind(':')),
                               "` shows the network's share; `top` on its machine shows whether it is busy")});
}

Finding CheckVersions(const ClusterValues& cluster) {
  std::map<std::string, std::vector<std::string>> others;
  for (const v1::NodeStatus& node : cluster.nodes.nodes()) {
    if (!node.version().empty() && node.version() != cluster.own_version)
      others[node.version()].push_back(NodeText(node));
  }
  if (others.empty()) return Ok("versions", absl::StrCat("all have ", cluster.own_version));
  std::vector<std::string> parts;
  parts.reserve(others.size());
  for (const auto& [version, nodes] : others) parts.push_back(absl::StrCat(version, " on ", SomeOf(nodes)));
  return Fault("versions", absl::StrCat("hooke is ", cluster.own_version, ", but ", absl::StrJoin(parts, "; ")),
               {"install the same version on all machines, and start their daemons again; jobs go on from their "
                "centers"});
}

Finding CheckServers(const ClusterValues& cluster) {
  const std::string check = "servers";
  std::vector<std::string> silent, unusable;
  int servers = 0;
  for (const v1::NodeStatus& node : cluster.nodes.nodes()) {
    if (node.kind() != v1::NodeStatus::SERVER) continue;
    ++servers;
    if (!node.alive()) {
      silent.push_back(node.name());
    } else if (!node.problem().empty()) {
      unusable.push_back(absl::StrCat(node.name(), " ", node.problem()));
    }
  }
  if (!unusable.empty()) {
    return Fault(check, absl::StrCat("unusable: ", SomeOf(unusable)),
                 {"hooke nodes    # and docs/daemons.md, \"A server's identity and address\", says what to do"});
  }
  if (!silent.empty()) {
    return Fault(check, absl::StrCat("silent: ", SomeOf(silent)),
                 {"start it again with its --state-dir: groups that miss it train on without it until then"});
  }
  return Ok(check, absl::StrCat(servers, servers == 1 ? " server is alive" : " servers are alive"));
}

Finding CheckWorkers(const ClusterValues& cluster) {
  const std::string check = "workers";
  std::vector<std::string> silent;
  int workers = 0;
  uint32_t slots = 0, used = 0;
  for (const v1::NodeStatus& node : cluster.nodes.nodes()) {
    if (node.kind() != v1::NodeStatus::WORKER) continue;
    ++workers;
    if (!node.alive()) {
      silent.push_back(node.name());
      continue;
    }
    slots += node.slots();
    used += node.slots_used();
  }
  if (workers == 0) {
    return Fault(check, "there is none, so that no job can run",
                 {absl::StrCat("hooke-worker --coordinator ", cluster.address, "    # on each node that trains")});
  }
  if (!silent.empty()) {
    return Warning(check, absl::StrCat("silent: ", SomeOf(silent)),
                   {"look on its machine: `ps -o pid,stat,args -C hooke-worker`; start it again if it is gone",
                    "one that is gone for good does no harm"});
  }
  return Ok(check, absl::StrCat(workers, workers == 1 ? " worker is alive, " : " workers are alive, ", used, " of ",
                                slots, " slots are in use"));
}

Finding CheckClocks(const ClusterValues& cluster) {
  const std::string check = "cluster clock";
  const std::optional<ClockDifference> difference = CoordinatorClock(cluster);
  if (!difference.has_value()) return Ok(check, "the coordinator has told no time yet");
  const bool ahead = difference->least > absl::ZeroDuration();
  const absl::Duration off = ahead ? difference->least : std::max(absl::ZeroDuration(), -difference->most);
  if (off < kClockMax) return Ok(check, "fits that of the coordinator's machine, to 2 s");
  return Warning(check,
                 absl::StrFormat("the coordinator's is at least %.0f s %s this machine's", absl::ToDoubleSeconds(off),
                                 ahead ? "ahead of" : "behind"),
                 {"sudo timedatectl set-ntp true    # on both machines; or: sudo apt-get install chrony"});
}

Finding CheckJobs(const ClusterValues& cluster) {
  const std::string check = "jobs";
  int running = 0, queued = 0;
  const v1::JobStatus* longest = nullptr;
  for (const v1::JobStatus& job : cluster.jobs.jobs()) {
    if (job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_EVALUATING) ++running;
    if (job.state() != v1::JOB_STATE_QUEUED) continue;
    ++queued;
    if (longest == nullptr || job.submitted_unix_ms() < longest->submitted_unix_ms()) longest = &job;
  }
  std::string found = absl::StrCat(running, " running, ", queued, " waiting");
  if (longest == nullptr) return Ok(check, found);
  const absl::Duration waits = absl::Milliseconds(longest->now_unix_ms() - longest->submitted_unix_ms());
  absl::StrAppend(&found, "; ", longest->job_id(), " waits for ", DurationText(waits), ": ", longest->reason());
  if (waits < kLongWait) return Ok(check, found);
  return Warning(
      check, found,
      {absl::StrCat("hooke jobs ", longest->job_id(), "    # what it asks for; `hooke nodes` shows what there is"),
       "add workers or slots, or `hooke cancel` what is not needed"});
}

}  // namespace

std::optional<ClockDifference> CoordinatorClock(const ClusterValues& cluster) {
  int64_t status_ms = 0, heard_ms = 0;
  for (const v1::JobStatus& job : cluster.jobs.jobs()) status_ms = std::max(status_ms, job.now_unix_ms());
  for (const v1::NodeStatus& node : cluster.nodes.nodes()) {
    if (node.alive()) heard_ms = std::max(heard_ms, node.last_heard_unix_ms());
  }
  if (status_ms == 0 && heard_ms == 0) return std::nullopt;
  // A status was made between the question and its answer. The newest heartbeat came a little earlier.
  const bool exact = status_ms >= heard_ms;
  const absl::Time theirs = absl::FromUnixMillis(std::max(status_ms, heard_ms));
  return ClockDifference{theirs - cluster.told, theirs - cluster.asked + (exact ? absl::ZeroDuration() : kHeartbeat)};
}

Findings CheckCluster(const ClusterValues& cluster) {
  if (cluster.token.ok() && cluster.by_default && absl::IsUnavailable(cluster.connected) &&
      absl::StrContains(cluster.connected.message(), "refused")) {
    return {Ok("cluster", absl::StrCat("none is named, and none runs at ", cluster.address),
               {"`hooke up` starts one on this machine; --coordinator HOST:PORT names another"})};
  }
  if (!cluster.token.ok()) return {CheckToken(cluster)};
  Findings findings = {CheckCoordinator(cluster)};
  if (!cluster.connected.ok()) return findings;
  findings.push_back(CheckToken(cluster));
  if (!cluster.answered.ok()) return findings;
  findings.push_back(CheckVersions(cluster));
  findings.push_back(CheckServers(cluster));
  findings.push_back(CheckWorkers(cluster));
  findings.push_back(CheckClocks(cluster));
  findings.push_back(CheckJobs(cluster));
  return findings;
}

}  // namespace hooke
