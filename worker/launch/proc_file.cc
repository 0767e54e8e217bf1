#include "worker/launch/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace hooke {

std::optional<std::string> ReadProcFile(pid_t pid, absl::string_view name) {
  const int file = open(absl::StrCat("/proc/", pid, "/", name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const auto closer = absl::MakeCleanup([file] { close(file); });
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace hooke
