#include "server/dashboard/page_export.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "job/model_file/center_file.h"
#include "wire/calls/center_pull.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

// A name that every system takes, and that is safe in a header of HTTP.
std::string FileNameOf(const std::string& job_id) {
  std::string name = job_id;
  for (char& letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    if (!absl::ascii_isalnum(code) && letter != '-' && letter != '.') letter = '_';
  }
  return name + ".safetensors";
}

CenterPullOptions PullOf(const v1::JobStatus& job, const PageExportOptions& options,
                         const std::function<bool()>& abandoned) {
  CenterPullOptions pull;
  pull.job_id = job.job_id();
  pull.servers.assign(job.servers().begin(), job.servers().end());
  pull.token = options.token;
  pull.silence = options.silence_at_first;
  pull.stopped = abandoned;
  return pull;
}

}  // namespace

struct PageExport::Source {
  explicit Source(CenterPullOptions options) : pull(std::move(options)) {}

  CenterPull pull;
  // The model file that `pull` delivers. It is set once the servers have given its layout.
  std::optional<CenterFile> file;
};

PageExport::PageExport(JobOf job_of, PageExportOptions options)
    : job_of_(std::move(job_of)), options_(std::move(options)), slots_(options_.slots) {}

absl::StatusOr<std::unique_ptr<PageExport::Source>> PageExport::Open(const std::string& job_id,
                                                                     const std::function<bool()>& abandoned) const {
  const absl::StatusOr<v1::JobStatus> job = job_of_(job_id);
  if (!job.ok()) return job.status();
  auto source = std::make_unique<Source>(PullOf(*job, options_, abandoned));
  absl::StatusOr<CenterFile> file = CenterFile::Open(*job, source->pull);
  if (!file.ok()) return file.status();
  source->file = *std::move(file);
  source->pull.set_silence(options_.silence_later);
  return source;
}

absl::StatusOr<PreparedExport> PageExport::Prepare(const std::string& job_id, const std::function<bool()>& abandoned) {
  const std::string ticket = RandomHex(4);
  // Takes a slot before the servers are called. So there are never more such calls than slots.
  if (absl::Status status = slots_.Reserve(ticket, job_id, SteadyTime()); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Source>> source = Open(job_id, abandoned);
  if (!source.ok()) {
    slots_.End(ticket);
    return source.status();
  }
  const CenterFile& file = *(*source)->file;
  return PreparedExport{ticket, FileNameOf(job_id), file.bytes(), file.notes()};
}

absl::StatusOr<HttpAnswer> PageExport::Download(const std::string& ticket, const std::function<bool()>& abandoned) {
  const absl::StatusOr<std::string> job_id = slots_.Begin(ticket, SteadyTime());
  if (!job_id.ok()) return job_id.status();
  // The slot is free again once nobody has the answer any more, or there is none.
  const std::shared_ptr<ExportSlots> slot(&slots_, [ticket](ExportSlots* slots) { slots->End(ticket); });
  absl::StatusOr<std::unique_ptr<Source>> opened = Open(*job_id, abandoned);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<Source> source = *std::move(opened);
  HttpAnswer answer;
  answer.type = "application/octet-stream";
  answer.next = WithinLongestDownload(source->file->bytes(), [source, slot] { return source->file->Next(); });
  answer.bytes = source->file->bytes();
  answer.file_name = FileNameOf(*job_id);
  return answer;
}

}  // namespace hooke
