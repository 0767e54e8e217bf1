#include "worker/file_cache/choose_evictions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"

namespace hooke {
namespace {

void SortByUse(std::vector<CachedFile>& files) {
  std::sort(files.begin(), files.end(), [](const CachedFile& a, const CachedFile& b) {
    return std::tie(a.used, a.name) < std::tie(b.used, b.name);
  });
}

}  // namespace

absl::Status CheckFits(uint64_t need, uint64_t bytes_max) {
  if (need <= bytes_max) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the job's files need ", BytesText(need),
                                                    ", and this worker's cache has room for ", BytesText(bytes_max),
                                                    ": start hooke-worker with a larger --files-cache-bytes"));
}

absl::StatusOr<std::vector<std::string>> ChooseEvictions(std::vector<CachedFile> files, uint64_t need,
                                                         uint64_t bytes_max) {
  if (absl::Status status = CheckFits(need, bytes_max); !status.ok()) return status;
  uint64_t bytes = 0;
  uint64_t in_use = 0;
  for (const CachedFile& file : files) {
    bytes += file.bytes;
    if (file.in_use) in_use += file.bytes;
  }
  if (in_use + need > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the job's files need ", BytesText(need), " more, and groups that run here use ",
                     BytesText(in_use), " of the ", BytesText(bytes_max),
                     " of this worker's cache: wait for their end, or start hooke-worker with a larger "
                     "--files-cache-bytes"));
  }
  SortByUse(files);
  std::vector<std::string> leave;
  for (CachedFile& file : files) {
    if (bytes + need <= bytes_max) break;
    if (file.in_use) continue;
    bytes -= file.bytes;
    leave.push_back(std::move(file.name));
  }
  return leave;
}

std::vector<std::string> ChooseForDisk(std::vector<CachedFile> files, uint64_t need) {
  SortByUse(files);
  std::vector<std::string> leave;
  uint64_t bytes = 0;
  for (CachedFile& file : files) {
    if (!leave.empty() && bytes >= need) break;
    if (file.in_use) continue;
    bytes += file.bytes;
    leave.push_back(std::move(file.name));
  }
  return leave;
}

}  // namespace hooke
