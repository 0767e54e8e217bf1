#ifndef HOOKE_SERVER_DASHBOARD_PAGE_EXPORT_H_
#define HOOKE_SERVER_DASHBOARD_PAGE_EXPORT_H_

// Passes a job's center through to a browser, as the file that `hooke export` writes. The coordinator holds no center:
// it reads the center from the servers, block by block, as fast as the browser takes it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "server/dashboard/export_slots.h"
#include "wire/cluster_token.h"
#include "wire/http/http_server.h"

namespace hooke {

struct PageExportOptions {
  ClusterToken token = {};  // Of the cluster; may be empty.
  // Before the first byte: a server that sends nothing for so long is away. The page waits for the answer meanwhile.
  absl::Duration silence_at_first = absl::Seconds(8);
  // A server that sends nothing for this long while the file is sent is away.
  absl::Duration silence_later = absl::Seconds(30);
  ExportSlotsOptions slots = {};
};

// The coordinator's answer to a page that wants to download a model.
struct PreparedExport {
  std::string ticket;  // Names the download in the page's next request.
  std::string file_name;
  uint64_t bytes = 0;
  std::vector<std::string> notes;  // Remarks for people, each a sentence.
};

// Thread-safe. Outlives the answers of Download.
class PageExport {
 public:
  // Returns a job as it is now. Called by several threads.
  using JobOf = std::function<absl::StatusOr<v1::JobStatus>(const std::string& job_id)>;

  PageExport(JobOf job_of, PageExportOptions options);

  // Looks whether all servers have their part of the center, and takes a slot. Errors are those of JobOf, ExportSlots,
  // CenterFile::Open and CenterPull::Next. Returns soon once `abandoned` is true.
  absl::StatusOr<PreparedExport> Prepare(const std::string& job_id, const std::function<bool()>& abandoned);

  // Begins the download of a ticket. Errors are those of Prepare.
  absl::StatusOr<HttpAnswer> Download(const std::string& ticket, const std::function<bool()>& abandoned);

 private:
  struct Source;

  absl::StatusOr<std::unique_ptr<Source>> Open(const std::string& job_id, const std::function<bool()>& abandoned) const;

  const JobOf job_of_;
  const PageExportOptions options_;
  ExportSlots slots_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_PAGE_EXPORT_H_
