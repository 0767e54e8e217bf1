#include "client/export/export_center.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/export/safetensors.h"
#include "files/new_file.h"
#include "job/model_file/center_file.h"
#include "wire/calls/center_pull.h"

namespace hooke {
namespace {

absl::StatusOr<Exported> Write(CenterFile& center, const ExportOptions& options) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Create(options.path, center.bytes());
  if (!file.ok()) return file.status();
  while (true) {
    const absl::StatusOr<std::string> bytes = center.Next();
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) break;
    if (absl::Status status = file->Append(*bytes); !status.ok()) return status;
  }
  if (absl::Status status = file->Finish(options.force); !status.ok()) return status;
  return Exported{center.tensors(), center.values(), center.bytes(), center.described(), center.notes()};
}

}  // namespace

absl::StatusOr<Exported> ExportCenter(const v1::JobStatus& job, const ExportOptions& options) {
  if (absl::Status status = CheckNewFile(options.path, options.force); !status.ok()) return status;
  CenterPullOptions pull;
  pull.job_id = job.job_id();
  pull.servers.assign(job.servers().begin(), job.servers().end());
  pull.token = options.token;
  pull.silence = options.silence;
  if (options.interrupts != nullptr)
    pull.stopped = [&] { return options.interrupts->WaitFor(absl::ZeroDuration()).has_value(); };
  CenterPull source(std::move(pull));
  absl::StatusOr<CenterFile> center = CenterFile::Open(job, source);
  absl::StatusOr<Exported> exported = center.ok() ? Write(*center, options) : absl::StatusOr<Exported>(center.status());
  if (!absl::IsCancelled(exported.status())) return exported;
  return absl::CancelledError(absl::StrCat("interrupted; ", options.path, " was not written"));
}

}  // namespace hooke
