#ifndef HOOKE_SERVER_RECORDS_RECORDS_H_
#define HOOKE_SERVER_RECORDS_RECORDS_H_

// The durable state of jobs, and of what users said about workers: plain values, written to a JobStore and read back
// after a restart of the coordinator. Progress, silences and notices are not stored.

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"

namespace hooke {

// One start of one group.
struct GroupKey {
  std::string job_id;
  uint32_t group = 0;
  uint32_t incarnation = 0;

  friend bool operator==(const GroupKey& a, const GroupKey& b) {
    return std::tie(a.job_id, a.group, a.incarnation) == std::tie(b.job_id, b.group, b.incarnation);
  }
  friend bool operator<(const GroupKey& a, const GroupKey& b) {
    return std::tie(a.job_id, a.group, a.incarnation) < std::tie(b.job_id, b.group, b.incarnation);
  }
};

inline GroupKey KeyOf(const v1::GroupId& id) { return {id.job_id(), id.group(), id.incarnation()}; }
v1::GroupId IdOf(const GroupKey& key);

// Returns the number after the last '-' of a job's id; 0 if there is none that a coordinator would have given.
inline uint64_t JobNumberOf(absl::string_view job_id) {
  constexpr uint64_t kNumberMax = 1000000000000;
  const size_t dash = job_id.rfind('-');
  uint64_t number = 0;
  if (dash == job_id.npos || !absl::SimpleAtoi(job_id.substr(dash + 1), &number)) return 0;
  return number <= kNumberMax ? number : 0;
}

// The ranks of a group that one worker runs.
struct GroupPart {
  std::string worker;
  uint32_t first_rank = 0;
  uint32_t ranks = 0;
  std::string address = {};  // GroupPart.address of proto/coordinator.proto; may be empty if it is the only part.
  uint64_t last_event = 0;   // Number of the worker's last event of this incarnation that was applied.
  bool ended = false;        // This part has ended well, in a group of several parts.
};

// The times of a start, serialized. A job's record is copied with each change, and stays in memory as long as the job
// is known. A message of a dozen spans takes five times as much memory, and a dozen allocations to copy.
class PackedStart {
 public:
  explicit PackedStart(const v1::StartTimes& times)
      : incarnation_(times.incarnation()), bytes_(times.SerializeAsString()) {}

  uint32_t incarnation() const { return incarnation_; }
  v1::StartTimes Unpack() const {
    v1::StartTimes times;
    times.ParseFromString(bytes_);
    return times;
  }

 private:
  uint32_t incarnation_;
  std::string bytes_;
};

struct GroupRecord {
  uint32_t group = 0;
  v1::GroupStart::Task task = v1::GroupStart::TRAIN;
  v1::GroupState state = v1::GROUP_STATE_WAITING;
  std::string reason;
  // The workers that run the group, or ran it last, in order of ranks. The first one is the lead, which starts mpirun.
  // Empty: the group was never placed.
  std::vector<GroupPart> parts;
  std::string site;
  uint32_t incarnation = 0;  // Number of its last start, as in v1::GroupStatus.
  uint32_t failures = 0;     // Failures and losses in a row without a new step.
  uint64_t best_step = 0;    // The furthest step known when it last ended or was lost.
  bool evaluated = false;    // The result of task EVALUATE has come.
  std::string cause = {};    // How its last start ended (CauseOf); empty: not by a failure, or it made a new step.
  uint32_t repeats = 0;      // Ends in a row with this cause, without a new step between them.
  std::vector<std::string> last_lines = {};  // HELD: the last lines that it printed, oldest first.
  bool is_new = false;                       // GroupStart.is_new.
  // The last RankProgress.exchanged_step of its rank 0. It counts where no server says how far the group came
  // (LastSteps in server/cluster/next_generation.h).
  uint64_t exchanged_step = 0;
  std::vector<PackedStart> starts = {};  // What took how long in its first start and its last three.
  // How far its last start came: a RankProgress, serialized like PackedStart. Empty: it runs, or nothing was heard of
  // it.
  std::string end_progress = {};
};

// The generations of a job. All fields are empty or 0 until the number of its groups changes.
struct Generations {
  // The groups of the next generation, which begins when all present ones have left; nullopt: none is to begin.
  std::optional<v1::GroupsSpec> wanted;
  std::vector<v1::Generation> earlier;  // As in GroupStart; so are the next two.
  uint64_t first_step = 0;
  uint32_t first_incarnation = 0;
};

// Returns the part of the group on this worker; null if there is none.
inline const GroupPart* PartOn(const GroupRecord& group, absl::string_view worker) {
  for (const GroupPart& part : group.parts) {
    if (part.worker == worker) return &part;
  }
  return nullptr;
}
inline GroupPart* PartOn(GroupRecord& group, absl::string_view worker) {
  return const_cast<GroupPart*>(PartOn(std::as_const(group), worker));
}

// Returns the group's workers for people: "worker a", "workers a (ranks 0-1) and b (rank 2)".
std::string PlaceText(const GroupRecord& group);

// The server that holds one shard of a job.
struct JobServer {
  std::string id;  // ServerHeartbeatRequest.server_id. Empty: not known yet, in a job that an older version stored.
  std::string address;  // HOST:PORT at which the coordinator reached it last.
};

// Returns a key that no other server has. It is the server's identity, or its address if the identity is not known. No
// identity has a colon, and each address has one.
inline const std::string& KeyOf(const JobServer& server) { return server.id.empty() ? server.address : server.id; }

struct JobRecord {
  std::string job_id;
  uint64_t number = 0;  // Grows in the order of submission.
  std::string submission_id;
  v1::JobSpec spec;
  v1::JobState state = v1::JOB_STATE_QUEUED;
  std::string reason;
  int64_t submitted_unix_ms = 0;
  uint64_t preparing_us = 0;  // SubmitRequest has `preparing_us` and `upload_us`, too.
  uint64_t upload_us = 0;
  int64_t started_unix_ms = 0;
  int64_t first_step_unix_ms = 0;
  int64_t ended_unix_ms = 0;
  std::vector<JobServer> servers;  // By shard. Chosen when the first group is placed; empty before.
  std::optional<v1::CenterEvaluated> center;
  Generations generations;
  std::vector<GroupRecord> groups;  // By index; the evaluating one comes last.
};

// The trace of a job that was forgotten. With it the coordinator tells each server to free its shard of the job,
// however late that server comes back.
struct ForgottenJob {
  std::string job_id;
  uint64_t number = 0;
  std::string job_key;  // Tells the job's shards from those of another job that has the same id.

  // The most traces that are kept. They are those with the highest numbers. Shards of jobs without a trace are never
  // freed.
  static constexpr size_t kKeptMax = 50000;
};

// The drain of a worker: the worker gets no groups. The drain holds until a user takes it back, also after a restart of
// the coordinator.
struct WorkerDrain {
  std::string worker;
  v1::Drain drain = v1::DRAIN_NONE;  // NONE: the worker gets groups again, and its record is removed.
};

// How much of the cluster an owner of jobs has used.
struct OwnerUse {
  std::string owner;
  double slot_seconds = 0;  // Use up to `unix_ms`. 0: the record is removed.
  int64_t unix_ms = 0;
};

inline bool IsPlaced(v1::GroupState state) {
  return state == v1::GROUP_STATE_STARTING || state == v1::GROUP_STATE_RUNNING;
}

// Returns whether the group is to start again, by itself or when a user says so.
inline bool WillStart(v1::GroupState state) {
  return state == v1::GROUP_STATE_WAITING || state == v1::GROUP_STATE_HELD;
}

}  // namespace hooke

#endif  // HOOKE_SERVER_RECORDS_RECORDS_H_
