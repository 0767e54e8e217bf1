#include "mpi_group/sockets/open_files.h"

#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// The number of files that this process has open, one of them for counting.
uint64_t FilesOpen() {
  uint64_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

absl::Status MakeRoomForFiles(uint64_t more) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::ErrnoToStatus(errno, "getrlimit");
  const uint64_t needed = FilesOpen() + more;
  if (needed <= limit.rlim_cur) return absl::OkStatus();
  if (needed > limit.rlim_max) {
    return absl::ResourceExhaustedError(absl::StrCat("needs ", needed, " open files, and the limit is ", limit.rlim_max,
                                                     "; raise it with `ulimit -n ", needed,
                                                     "` before the ranks are started"));
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::ErrnoToStatus(errno, "raising the limit of open files");
  return absl::OkStatus();
}

}  // namespace hooke
