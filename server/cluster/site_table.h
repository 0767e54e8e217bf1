#ifndef HOOKE_SERVER_CLUSTER_SITE_TABLE_H_
#define HOOKE_SERVER_CLUSTER_SITE_TABLE_H_

// The sites that get their workers from a batch system. Each has an agent: a process that gets the workers, and says
// what each job waits for there.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "clocks/instant.h"
#include "proto/job.pb.h"
#include "server/cluster/known.h"
#include "server/cluster/worker_table.h"
#include "server/records/records.h"

namespace hooke {

class SiteTable {
 public:
  // Notes that the process `instance` speaks for the site now. Returns whether it did not before. ALREADY_EXISTS:
  // another live agent speaks for the site. RESOURCE_EXHAUSTED: there are known::kNodesMax sites already.
  absl::StatusOr<bool> Hear(const std::string& site, const std::string& instance, Instant now);
  // Replaces what jobs wait for at a site that was heard, by job id. Returns the notes that differ from those before.
  std::vector<std::pair<std::string, std::string>> SetNotes(const std::string& site,
                                                            std::map<std::string, std::string> notes);

  // Returns whether the site has, or had, an agent.
  bool Has(const std::string& site) const { return agents_.count(site) > 0; }
  // Returns whether the site's agent was heard of late.
  bool IsAlive(const std::string& site, Instant now) const;
  // Returns what the site's agent says about the job, to follow a reason: "; Slurm job 7 waits: Priority". Empty if it
  // says nothing or there is none.
  std::string TextOf(const JobRecord& job, const std::string& site, Instant now) const;

 private:
  struct Agent {
    std::string instance;
    Instant last_heard;
    std::map<std::string, std::string> notes;  // For each job that has not ended, what it waits for at the site.
  };

  std::map<std::string, Agent> agents_;  // By site.
};

// Returns the site at which the job's center is evaluated: that of the kind with the fewest ranks, of those whose site
// has workers or gets them from a batch system. If no site has, that of all kinds. Empty: any site.
std::string EvaluationSite(const known::Job& job, const SiteTable& sites, const WorkerTable& workers, Instant now);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_SITE_TABLE_H_
