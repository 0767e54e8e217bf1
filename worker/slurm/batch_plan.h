#ifndef HOOKE_WORKER_SLURM_BATCH_PLAN_H_
#define HOOKE_WORKER_SLURM_BATCH_PLAN_H_

// Which batch jobs does a site need? The plan compares the groups that wait with the batch jobs that Slurm has. A batch
// job starts workers, which run groups of one job only. It is as large as the group for which it was submitted. Any
// group of that job may run on its workers, so a group that starts again, and the evaluation, need no new one.
//
// Pure: times are steady and come from the caller, and nothing here talks to Slurm. For one thread.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"
#include "worker/slurm/batch_end.h"

namespace hooke {

// A batch job of this site, as Slurm's queue shows it.
struct BatchJob {
  enum class State {
    kWaits,  // Has no nodes yet.
    kHeld,   // Gets no nodes: Slurm or an administrator holds it back.
    kRuns,
    kEnds,  // Its nodes are being cleared.
  };
  std::string id;      // Slurm's number: "4211".
  std::string job_id;  // Its workers run only groups of this job.
  uint32_t ranks = 0;  // The ranks that it was submitted for.
  State state = State::kWaits;
  std::string reason;  // Slurm's word for what it waits for: "Priority".
};

struct BatchPlanOptions {
  uint32_t ranks_max = 1024;  // The most ranks of all batch jobs of this site together.
  // A running batch job is given up if not all of its workers have come within this time, and no group runs there.
  absl::Duration workers_within = absl::Minutes(3);
  // After a failure, no batch job is submitted for the same job for `retry_min`. The pause doubles with each failure in
  // a row, up to `retry_max`.
  absl::Duration retry_min = absl::Seconds(10);
  absl::Duration retry_max = absl::Minutes(10);
  // A batch job whose first group came less than this before its end counts as a failure, except for the first of
  // several in a row. This happens, for example, under a time limit of two minutes: worker.sbatch ends its workers two
  // minutes before the limit.
  absl::Duration brief = absl::Minutes(1);
  // A batch job that waits in Slurm's queue is ended when its job has had no waiting group for this time. The time is
  // long, because a group that cannot start for a while is not listed as waiting, and the batch job's place in the
  // queue must not be lost. A batch job that waits although the others suffice for the job's groups is ended at once.
  absl::Duration unneeded_for = absl::Minutes(5);
  // A batch job that was asked to end is ended by force after this time.
  absl::Duration end_within = absl::Minutes(1);
  size_t ends_max = 200;  // Batch jobs that one turn ends. The next turn ends more.
};

class BatchPlan {
 public:
  explicit BatchPlan(BatchPlanOptions options) : options_(options) {}

  struct Submission {
    std::string job_id;
    uint32_t ranks = 0;
    v1::SlurmSpec slurm;
    // The most GPUs that a rank of the job's groups needs, because any of its groups may run there.
    uint32_t gpus_per_rank = 0;
  };
  struct End {
    std::string id;
    bool gently = false;  // Its workers get time to end their groups.
  };
  // A batch job that was of no use, although a group waits for it.
  struct Lost {
    enum class Why {
      kNoWorkers,    // It has ended before any of its workers came.
      kLateWorkers,  // It runs, but not all of its workers have come in time.
      kNoGroup,      // Its workers came and went, and no group was placed there.
      kHeld,         // Slurm or an administrator holds it back, so it would never start.
    };
    BatchJob job;
    Why why = Why::kNoWorkers;
  };
  struct Actions {
    // The caller answers each by Submitted or Failed, but leaves out those of a job that FailedThisTurn.
    std::vector<Submission> submissions;
    std::vector<End> ends;
    std::vector<Lost> lost;  // The caller answers each by Failed.
    // Batch jobs that have run a group and are gone, although this plan did not end them. The caller asks Slurm how
    // they ended, and answers by Tell if people should know.
    std::vector<BatchJob> gone;
  };
  // Compares what the coordinator has answered with Slurm's queue, which was read after that answer.
  Actions Next(const v1::SiteHeartbeatResponse& site, const std::vector<BatchJob>& queue, absl::Duration now);

  // Notes that a submission has succeeded. Each later queue has this id, until the batch job ends.
  void Submitted(const Submission& submission, const std::string& id);
  // Notes why the job got no workers, in words for people. Of several failures in one turn the first counts.
  void Failed(const std::string& job_id, const std::string& why, absl::Duration now);
  // Returns whether Failed was called for the job since the last Next.
  bool FailedThisTurn(const std::string& job_id) const { return failed_this_turn_.count(job_id) > 0; }

  // Notes what people should know of a batch job that is gone. Notes has it while groups of the job wait.
  void Tell(const std::string& job_id, const std::string& text, absl::Duration now) { told_.Add(job_id, text, now); }

  // Returns what each job waits for here, as the last queue has shown it, and how the last batch jobs ended.
  std::vector<v1::SiteNote> Notes() const;
  // Returns the jobs that have batch jobs, failures, or texts on how batch jobs ended.
  std::set<std::string> Jobs() const;
  // Returns whether the last queue, or a submission since, had this batch job.
  bool Has(const std::string& id) const { return known_.count(id) > 0; }

 private:
  struct Known {
    BatchJob job;
    uint64_t slots = 0;        // Slots of the batch job's workers that the coordinator lists now.
    uint64_t used = 0;         // The part of `slots` on which groups run.
    uint64_t free = 0;         // Slots for groups that wait. Slots of workers that are still to come count, too.
    bool had_workers = false;  // One of its workers was seen.
    bool had_all = false;      // Its workers once had as many slots as it has ranks.
    bool had_groups = false;   // A group was seen on its workers.
    absl::Duration runs_since = absl::InfiniteDuration();
    bool ran_long = false;  // A group ran on its workers for longer than BatchPlanOptions::brief.
    absl::Duration groups_since = absl::InfiniteDuration();  // When a group was first seen on its workers.
    // The batch job waits in Slurm's queue, and since this time no group has needed it.
    absl::Duration unneeded_since = absl::InfiniteDuration();
    absl::Duration ended_at = absl::InfiniteDuration();  // When it was asked to end.
  };
  struct Failure {
    std::string why;  // Empty: batch jobs ended soon after their first group.
    int in_a_row = 0;
    absl::Duration again_at;
    // The last batch job ended soon after its first group. So a new group clears the failure only once it has run
    // longer.
    bool ran_briefly = false;
  };

  void Postpone(Failure& failure, absl::Duration now) const;
  void NoteBriefRun(const Known& known, absl::Duration now);
  // Notes that groups use the batch job.
  void NoteGroups(Known& known, absl::Duration now);
  void TakeQueue(const std::vector<BatchJob>& queue, absl::Duration now, Actions& actions);
  void TakeWorkers(const v1::SiteHeartbeatResponse& site, absl::Duration now);
  // Returns whether the batch job runs and some of its workers may still come.
  bool Starts(const Known& known, absl::Duration now) const;
  void GiveUp(absl::Duration now, Actions& actions);
  void Serve(const v1::SiteJob& job, absl::Duration now, Actions& actions);
  void EndUnneeded(const v1::SiteHeartbeatResponse& site, absl::Duration now, Actions& actions);
  uint64_t RanksInSlurm() const;

  const BatchPlanOptions options_;
  std::map<std::string, Known> known_;          // By id.
  std::map<std::string, Failure> failures_;     // By job.
  std::map<std::string, std::string> full_;     // Why jobs wait because of ranks_max. The key is the job's id.
  EndNotes told_;                               // How batch jobs have ended.
  std::set<std::string> waiting_;               // Jobs with groups that waited at the last Next.
  std::set<std::string> failed_this_turn_;      // Jobs for which Failed was called since the last Next.
  absl::Duration last_ = absl::ZeroDuration();  // When Next was called last.
};

// Returns the id of the batch job to which a worker belongs, by the worker's name: "n17-4211". Empty if there is none.
std::string BatchIdOf(const std::string& worker);

}  // namespace hooke

#endif  // HOOKE_WORKER_SLURM_BATCH_PLAN_H_
