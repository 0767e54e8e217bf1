#ifndef HOOKE_SERVER_COORDINATOR_FAKE_WORKER_H_
#define HOOKE_SERVER_COORDINATOR_FAKE_WORKER_H_

// For tests: a worker without processes or streams. It obeys commands, keeps the events that are not seen yet and
// repeats them after it has connected again, as the real daemon does. One thread.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clocks/instant.h"
#include "server/coordinator/coordinator.h"
#include "server/records/records.h"

namespace hooke {

class FakeWorker {
 public:
  struct Run {
    v1::StartGroupCommand start;
    uint64_t events = 0;  // Number of events sent so far.
    uint64_t step = 0;
    bool stopping = false;  // The group was told to stop, and has not ended yet.
    std::vector<v1::LaunchPart> launches;
  };

  FakeWorker(std::string name, uint32_t slots, std::string site = "hpc");

  // From the next hello on, the worker says that it runs commands.
  void AllowCommands() { allows_commands_ = true; }
  void SetGpus(uint32_t gpus) { gpus_ = gpus; }

  // From the next hello on, the worker runs only groups of this job.
  void SetOnlyJob(std::string job_id) { only_job_ = std::move(job_id); }
  // From the next hello on, the worker has this address, so that it may run a part of a group.
  void SetAddress(std::string address) { address_ = std::move(address); }
  // From now on, no part on this worker says that it is ready.
  void NeverReady() { never_ready_ = true; }

  // Says hello to the coordinator, then sends again the events that it has not acknowledged.
  absl::Status Connect(Coordinator& coordinator, Instant now);
  // Ends the worker's stream. Its groups go on.
  void Disconnect(Instant now);
  // Says that the daemon is about to end.
  absl::Status AnnounceEnd(Instant now);
  // Ends the daemon in good order. Another daemon takes its place.
  absl::Status SayGoodbye(Instant now);
  // Kills the daemon with its groups. Another daemon takes its place.
  void Crash(Instant now);
  bool connected() const { return session_ != 0; }
  // Returns whether this session's welcome has come.
  bool welcomed() const { return session_ != 0 && welcomed_; }

  // Takes the commands that wait for the worker, and obeys them. A group that is told to stop ends at once, unless
  // `linger`.
  void Receive(Instant now, bool linger = false);
  void Heartbeat(Instant now);

  // Reports that the group's launcher has started, and that it took `preparing` from the command on.
  void Started(const GroupKey& key, absl::Duration preparing, Instant now);
  void SayReady(const GroupKey& key, Instant now);
  // Sends mpirun's request to start its daemon on the node at `address`, as a RemoteStart.
  void Remote(const GroupKey& key, const std::string& address, const std::vector<std::string>& arguments, Instant now);
  void Progress(const GroupKey& key, uint64_t step, Instant now);
  // Does what Progress does, and says how long rank 0 has computed so far.
  void Works(const GroupKey& key, uint64_t step, absl::Duration computed, Instant now);
  // Sends `rank_event` unchanged, as a report of the rank.
  void Send(const GroupKey& key, uint32_t rank, const v1::RankEvent& rank_event, Instant now);
  void Evaluated(const GroupKey& key, double accuracy, Instant now);
  void Silence(const GroupKey& key, bool silent, Instant now);
  // Reports that a rank gives up with `status`. `server` is the server that it misses, or empty. The caller then sends
  // the group's end by End.
  void Failed(const GroupKey& key, const absl::Status& status, const std::string& server, Instant now);
  void End(const GroupKey& key, const absl::Status& status, Instant now);
  // Sends a line of the group's output.
  void Log(const GroupKey& key, const std::string& line, Instant now);
  // Sends the last event once more.
  void Repeat(Instant now);

  const std::map<GroupKey, Run>& running() const { return running_; }
  // Returns every start that the worker ever got.
  const std::vector<GroupKey>& started() const { return started_; }
  const std::vector<std::string>& stop_reasons() const { return stop_reasons_; }
  // Returns how many of these stops let the ranks leave first (StopGroup.leaves).
  size_t leaves() const { return leaves_; }
  uint32_t slots() const { return slots_; }
  uint32_t slots_used() const;
  size_t unseen() const { return unseen_.size(); }
  // Returns the number of clock echoes that the worker got.
  int echoes() const { return echoes_; }

 private:
  v1::RankEvent* Report(v1::GroupEvent& event) { return event.mutable_report()->mutable_event(); }
  v1::GroupEvent NewEvent(const GroupKey& key);
  void SendEvent(v1::GroupEvent event, Instant now);

  const std::string name_;
  const std::string site_;
  const uint32_t slots_;
  uint64_t instance_ = 1;
  Coordinator* coordinator_ = nullptr;
  SessionId session_ = 0;
  bool welcomed_ = false;
  bool allows_commands_ = false;
  uint32_t gpus_ = 0;
  bool never_ready_ = false;
  std::string address_;
  std::string only_job_;
  int echoes_ = 0;
  std::map<GroupKey, Run> running_;
  std::deque<v1::GroupEvent> unseen_;
  std::vector<GroupKey> started_;
  std::vector<std::string> stop_reasons_;
  size_t leaves_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_FAKE_WORKER_H_
