#ifndef HOOKE_WORKER_SLURM_SLURM_COMMANDS_H_
#define HOOKE_WORKER_SLURM_SLURM_COMMANDS_H_

// The command lines of sbatch, squeue and scancel, and what they print. Pure. No shell sees these command lines.

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/slurm/batch_plan.h"

namespace hooke {

// The facts that are the same for all batch jobs of a site. The comment of a batch job names site, coordinator, job and
// ranks, so that an agent that has started again knows its batch jobs from Slurm's queue.
struct SlurmSiteFacts {
  std::string site;
  std::string coordinator;                // HOST:PORT.
  std::string script;                     // Path of worker.sbatch.
  std::string folder;                     // For the logs of batch jobs.
  std::vector<std::string> sbatch_flags;  // More flags for sbatch. Those that a job asks for come after them, and win.
  std::vector<std::string> worker_flags;  // Flags of hooke-worker, for the script.
};

std::vector<std::string> SbatchCommand(const SlurmSiteFacts& facts, const BatchPlan::Submission& submission);
std::vector<std::string> SqueueCommand();
// Asks for the states of batch jobs that have ended. Slurm knows them for a while (MinJobAge), without accounting.
std::vector<std::string> EndStatesCommand(const std::vector<std::string>& ids);
// Returns at most two: one for the batch jobs that end gently, and one for the others.
std::vector<std::vector<std::string>> ScancelCommands(const std::vector<BatchPlan::End>& ends);

// Returns the environment for these programs: the given one without the variables that stand for flags which would hide
// batch jobs from the agent. SQUEUE_PARTITION, for example, leaves out those of other partitions.
std::vector<std::string> SlurmEnvironment(std::vector<std::string> environment);
// INVALID_ARGUMENT: with one of these flags the agent would not know its batch jobs, as with --array.
absl::Status CheckSbatchFlags(const std::vector<std::string>& flags);

// Returns the id from the output of sbatch, which may have warnings before it. INTERNAL: there is none.
absl::StatusOr<std::string> ReadSbatch(absl::string_view output);

// Returns id -> state from the output of EndStatesCommand: "4211" -> "TIMEOUT".
std::map<std::string, std::string> ReadEndStates(absl::string_view output);

// Returns the batch jobs of this site from the output of squeue, in its order. Lines about others are left out.
std::vector<BatchJob> ReadSqueue(const SlurmSiteFacts& facts, absl::string_view output);

}  // namespace hooke

#endif  // HOOKE_WORKER_SLURM_SLURM_COMMANDS_H_
