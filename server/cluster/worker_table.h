#ifndef HOOKE_SERVER_CLUSTER_WORKER_TABLE_H_
#define HOOKE_SERVER_CLUSTER_WORKER_TABLE_H_

// The workers that the coordinator knows, by name and by session.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "server/cluster/deadlines.h"
#include "server/cluster/effects.h"
#include "server/cluster/known.h"
#include "server/cluster/liveness.h"
#include "server/records/records.h"

namespace hooke {

class WorkerTable {
 public:
  using Workers = std::map<std::string, known::Worker>;

  explicit WorkerTable(LivenessOptions liveness) : liveness_(liveness) {}

  // Returns the worker of this name, which is added if there is none. It stays at its address until it is erased.
  known::Worker& Add(const std::string& name, Instant now);
  void Erase(const std::string& name) { workers_.erase(name); }

  // The workers by name.
  Workers::iterator begin() { return workers_.begin(); }
  Workers::iterator end() { return workers_.end(); }
  Workers::const_iterator begin() const { return workers_.begin(); }
  Workers::const_iterator end() const { return workers_.end(); }
  size_t size() const { return workers_.size(); }

  // Returns null if there is no such worker.
  known::Worker* Find(const std::string& name);
  const known::Worker* Find(const std::string& name) const;
  // Returns the worker of a session that has not ended; null if there is none.
  known::Worker* OfSession(SessionId session);

  // Gives the worker a new session. It must have none.
  void BeginSession(known::Worker& worker);
  // Ends the worker's session, if it has one.
  void EndSession(known::Worker& worker);

  // Returns whether groups can start on the worker now, as far as its connection goes.
  bool IsAlive(const known::Worker& worker, Instant now) const;
  // Returns whether the worker has a session and was heard of late. It may be lost.
  bool Answers(const known::Worker& worker, Instant now) const;
  bool IsConnected(const std::string& worker) const;
  // Returns whether any worker may be running a group of the job.
  bool MayRun(const std::string& job_id) const;
  // Returns the names of the group's workers whose stream has ended, as "worker b is gone; ". Empty if there are none.
  std::string GoneText(const GroupRecord& group) const;
  // Returns the worker that a failed group's end is blamed on. "": it is not known which.
  std::string WorkerToBlame(const GroupRecord& group, const known::LiveGroup& live) const;

  // Sees to it that TakeDue returns the worker when it may have become silent, lost or forgotten.
  void Expect(const known::Worker& worker) { due_.Set(worker.name, NextCheckOf(worker)); }
  // Returns the names of the workers that have to be looked at now. Some may be erased meanwhile, or heard again.
  std::vector<std::string> TakeDue(absl::Duration steady_now) { return due_.TakeDue(steady_now); }
  // Returns whether a lost worker is to be forgotten. A drained one never is, so that its drain can be seen and taken
  // back.
  static bool IsForgotten(const known::Worker& worker, Instant now);

 private:
  // Returns the steady time at which the worker has to be looked at.
  absl::Duration NextCheckOf(const known::Worker& worker) const;

  LivenessOptions liveness_;
  Workers workers_;
  std::map<SessionId, std::string> of_session_;
  SessionId next_session_ = 1;
  // When a worker has to be looked at, at the latest. A worker that is heard meanwhile has a later time.
  Deadlines<std::string> due_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_WORKER_TABLE_H_
