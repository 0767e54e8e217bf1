#ifndef HOOKE_WORKER_SLURM_SLURM_SITE_H_
#define HOOKE_WORKER_SLURM_SLURM_SITE_H_

// The agent of a site that gets its workers from Slurm: `hooke-worker --slurm`. It asks the coordinator which groups
// wait for the site, submits batch jobs for them (worker.sbatch), ends those that nobody needs, and tells the
// coordinator what each job waits for. It keeps nothing but the logs of batch jobs and its identity. After a restart it
// finds its batch jobs in Slurm's queue.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/stop_signal.h"
#include "proto/coordinator.grpc.pb.h"
#include "spdlog/spdlog.h"
#include "wire/cluster_token.h"
#include "worker/slurm/agent_identity.h"
#include "worker/slurm/batch_plan.h"
#include "worker/slurm/slurm_commands.h"

namespace hooke {

struct SlurmSiteOptions {
  SlurmSiteFacts facts;
  BatchPlanOptions plan;
  std::string host;                            // The name of this host.
  ClusterToken token;                          // May be empty.
  std::vector<std::string> environment;        // The environment of Slurm's programs, as "NAME=value".
  absl::Duration interval = absl::Seconds(2);  // Pause between two heartbeats, and two looks at the queue.
  // Pause between two looks at the queue while there are neither jobs for this site nor batch jobs of it.
  absl::Duration idle_interval = absl::Seconds(30);
  absl::Duration call_limit = absl::Seconds(5);  // The time limit for one call to the coordinator.
  // For one of Slurm's programs. The coordinator gives the site to another agent if it does not hear this one for 90 s.
  // Between two heartbeats squeue may run twice and scancel twice, or squeue twice and sbatch.
  absl::Duration command_limit = absl::Seconds(20);
  // A turn submits no more batch jobs once this long has passed since it began to act on the queue.
  absl::Duration submit_limit = absl::Seconds(20);
  // At the start, another agent may still speak for the site. The agent asks again for so long, which is more than the
  // 90 s after which the coordinator gives up an agent that has died.
  absl::Duration takeover_limit = absl::Minutes(2);
  size_t logs_max = 100;                   // Logs of batch jobs that are kept in the folder.
  std::function<void()> on_welcome;        // Called once, from the thread of the site; may be empty.
  std::shared_ptr<spdlog::logger> logger;  // Not null.
};

class SlurmSite {
 public:
  // Starts the agent's thread. NOT_FOUND: the script, or one of Slurm's programs, is missing. INVALID_ARGUMENT: as
  // CheckSbatchFlags. INTERNAL: the folder or its instance file cannot be made. FAILED_PRECONDITION: another agent of
  // this host uses the folder.
  static absl::StatusOr<std::unique_ptr<SlurmSite>> Start(SlurmSiteOptions options);

  // Ends the thread, after the program of Slurm that it runs. The batch jobs stay.
  ~SlurmSite();
  SlurmSite(const SlurmSite&) = delete;
  SlurmSite& operator=(const SlurmSite&) = delete;

  // Returns OK, or why the coordinator refuses this agent. A refused agent does nothing more.
  absl::Status Refusal();

 private:
  SlurmSite(SlurmSiteOptions options, std::unique_ptr<AgentIdentity> identity);

  void Run();
  // Returns false if the agent is refused for good.
  bool Turn();
  // Logs why the coordinator has not answered. Returns false if the agent is refused for good.
  bool GoesOnAfter(const absl::Status& status);
  void Welcome();
  absl::StatusOr<v1::SiteHeartbeatResponse> AskCoordinator();
  std::vector<v1::SiteNote> Notes() const;
  void Act(const BatchPlan::Actions& actions);
  void SubmitAll(const std::vector<BatchPlan::Submission>& submissions, absl::Duration until);
  void Submit(const BatchPlan::Submission& submission);
  // Asks Slurm once how the batch jobs have ended. Returns id -> state of those that it still knows.
  std::map<std::string, std::string> EndStates(const BatchPlan::Actions& actions) const;
  // Tells people how a batch job has ended. `state` is empty if Slurm has not said it.
  void TellEnd(const BatchJob& job, const std::string& state);
  // `state` as for TellEnd.
  std::string LostText(const BatchPlan::Lost& lost, const std::string& state) const;
  // Runs a program of Slurm, and returns what it prints. UNAVAILABLE: it has failed, with the end of its output.
  absl::StatusOr<std::string> RunCommand(std::vector<std::string> command) const;

  const SlurmSiteOptions options_;
  const std::unique_ptr<AgentIdentity> identity_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  BatchPlan plan_;  // Only the site's thread uses it and the members up to problem_logged_.
  bool welcomed_ = false;
  // When the coordinator first answered that another agent speaks for the site.
  absl::Duration refused_from_ = absl::InfiniteDuration();
  std::set<std::string> waiting_;  // The jobs with groups that wait, by the last answer of the coordinator.
  absl::Duration looked_ = -absl::InfiniteDuration();  // When Slurm's queue was read last.
  std::string queue_problem_;   // Why Slurm's queue could not be read the last time; empty: it could.
  std::string problem_logged_;  // The last problem with the coordinator that was logged; empty: it answered last.
  StopSignal stop_;
  absl::Mutex mutex_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_SLURM_SLURM_SITE_H_
