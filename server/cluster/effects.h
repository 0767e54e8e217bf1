#ifndef HOOKE_SERVER_CLUSTER_EFFECTS_H_
#define HOOKE_SERVER_CLUSTER_EFFECTS_H_

// The effects of an event that ClusterState leaves to its caller: what to store, to log and to send. Plain values.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clocks/instant.h"
#include "proto/coordinator.pb.h"
#include "server/cluster/profile_key.h"
#include "server/cluster/server_dial.h"
#include "server/history/history_book.h"
#include "server/records/records.h"

namespace hooke {

// One connection of a worker. 0: none.
using SessionId = uint64_t;

struct Effects {
  struct LogEntry {
    std::string job_id;  // Empty: the line belongs to no job and goes to the daemon's log only.
    std::string line;    // "<source> <text>". The writer puts the time before it.
    absl::Time time;
    bool ours = true;  // True: the line is the coordinator's own, so it goes to the daemon's log, too.
  };
  struct Command {
    SessionId session = 0;
    v1::WorkerCommand command;
    // The command is sent only after this job's change is stored. Empty: the command is sent at once.
    std::string after;
  };

  // Adds a line to the job's log and to the daemon's.
  void Log(const std::string& of_job, absl::string_view text, Instant now) {
    log.push_back({of_job, absl::StrCat("coordinator ", text), now.wall, true});
  }
  // Adds a line to the daemon's log only.
  void LogDaemon(absl::string_view text, Instant now) { log.push_back({"", std::string(text), now.wall, true}); }
  // Tells a worker to stop a group. `leaves`: the ranks may first make their last exchange and leave by themselves.
  void SendStop(SessionId session, const GroupKey& group, absl::string_view reason, bool leaves = false) {
    v1::WorkerCommand command;
    *command.mutable_stop()->mutable_group() = IdOf(group);
    command.mutable_stop()->set_reason(std::string(reason));
    command.mutable_stop()->set_leaves(leaves);
    Send(session, std::move(command));
  }
  // Sends the command once the change of job `after` is stored. If `after` is empty, the command waits for nothing.
  void Send(SessionId session, v1::WorkerCommand command, const std::string& after = "") {
    commands.push_back({session, std::move(command), after});
  }

  std::set<std::string> jobs;  // Jobs whose records changed and have to be stored.
  // Jobs to remove from the store, with their logs and profiles, by job id. The store keeps these traces of them.
  std::map<std::string, ForgottenJob> forgotten;
  std::map<std::string, v1::Drain> drains;  // Workers whose drain changed and has to be stored.
  std::map<std::string, OwnerUse> uses;     // Uses of owners to store, by owner.
  std::vector<JobRecord> submissions;       // New jobs to store. Each is answered once, by EndSubmit.
  std::set<std::string> shown;              // Jobs whose status changed.
  std::vector<LogEntry> log;
  std::map<ProfileKey, std::string> profiles;  // Valid profiles to store, each a serialized v1::RankProfile.
  std::vector<HistoryEntry> points;            // New points of histories.
  // Commands to send, in the order of their causes. SessionOutbox says which are sent later.
  std::vector<Command> commands;
  // The highest number of an event that came from a group. EventsSeen goes out once the job's changes are stored.
  std::map<std::pair<SessionId, GroupKey>, uint64_t> seen;
  std::map<SessionId, std::string> closed;  // Sessions to end, and why.
  std::vector<ServerDial> dials;            // Each is answered once, by ServerDialed.

  bool empty() const {
    return jobs.empty() && forgotten.empty() && drains.empty() && uses.empty() && submissions.empty() &&
           shown.empty() && log.empty() && profiles.empty() && points.empty() && commands.empty() && seen.empty() &&
           closed.empty() && dials.empty();
  }
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_EFFECTS_H_
