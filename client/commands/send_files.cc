#include "client/commands/send_files.h"

#include <map>
#include <ostream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/text/terminal_text.h"
#include "clocks/process_age.h"
#include "job/file_manifest.h"

namespace hooke {

absl::StatusOr<absl::Duration> SendFiles(const Invocation& invocation, CoordinatorClient& coordinator,
                                         const v1::JobSpec& job, const CollectedFiles& files,
                                         const std::function<bool()>& goes_on) {
  if (!job.command().has_files()) return absl::ZeroDuration();
  const absl::Duration begin = ProcessAge();
  const absl::StatusOr<CoordinatorClient::Uploaded> uploaded = coordinator.PutFiles(files, goes_on);
  if (!uploaded.ok()) return uploaded.status();
  const absl::Duration took = ProcessAge() - begin;
  const std::string what = uploaded->contents == 0
                               ? "the coordinator has all of them"
                               : absl::StrCat("uploaded ", uploaded->contents, " of ", files.contents.size(), ", ",
                                              BytesText(uploaded->bytes));
  if (invocation.json()) return took;
  *invocation.err << "hooke: " << FilesText(job.command().files()) << " for each group; " << what << std::endl;
  return took;
}

void SayUnknownSites(const Invocation& invocation, CoordinatorClient& coordinator, const v1::JobSpec& job) {
  if (job.command().sites().empty()) return;
  const absl::StatusOr<v1::ListNodesResponse> nodes = coordinator.ListNodes();
  if (!nodes.ok()) return;
  std::set<std::string> known;
  for (const v1::NodeStatus& node : nodes->nodes()) {
    if (node.kind() == v1::NodeStatus::WORKER) known.insert(node.site());
  }
  const std::map<std::string, v1::SiteSpec> sites(job.command().sites().begin(), job.command().sites().end());
  for (const auto& [site, spec] : sites) {
    if (known.count(site) > 0) continue;
    *invocation.err << "hooke: no worker is at site " << Printable(site)
                    << " now; what the job's key sites says of it counts once one is" << std::endl;
  }
}

}  // namespace hooke
