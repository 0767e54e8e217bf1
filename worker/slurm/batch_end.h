#ifndef HOOKE_WORKER_SLURM_BATCH_END_H_
#define HOOKE_WORKER_SLURM_BATCH_END_H_

// How batch jobs have ended, in words for people, and for how long people are told. Pure: times come from the caller.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

// A batch job that has ended, as far as the site knows it.
struct BatchEnd {
  std::string id = {};           // Slurm's number: "4211".
  std::string state = {};        // Slurm's word: "TIMEOUT". Empty: Slurm has not said it.
  std::string script_said = {};  // Why the script ended its workers: "the time limit is near: the workers end".
  std::string log = {};          // Path of the batch job's log.
  std::string last_line = {};    // The last line of the log.
};

// Returns "Slurm job 4211 ended: TIMEOUT". Of a batch job that has failed, it adds where the log is and its last line.
// For one that has completed because the script was told to end its workers, it gives the script's cause. It returns ""
// if the workers have ended by themselves, as they do without a group, because nobody needs to know.
std::string EndText(const BatchEnd& end);

// Keeps what people are told of ended batch jobs. A text about a job stays until the job's groups have waited and wait
// no more, so a group that waits for its next batch job shows how the last one ended. For one thread.
class EndNotes {
 public:
  // Adds a text about the job. If there are more than three, the oldest goes.
  void Add(const std::string& job_id, const std::string& text, absl::Duration now);
  // Drops the texts that are of no more interest. `waiting` has the jobs with groups that wait now.
  void Next(const std::set<std::string>& waiting, absl::Duration now);
  void Forget(const std::string& job_id) { jobs_.erase(job_id); }
  // Returns the texts about each job.
  std::map<std::string, std::vector<std::string>> Texts() const;

 private:
  struct OfJob {
    std::vector<std::string> texts;
    bool waited = false;  // Since the last text came, a group of the job has waited at least once.
    absl::Duration last_came;
  };
  std::map<std::string, OfJob> jobs_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_SLURM_BATCH_END_H_
