#include "client/doctor/proc_texts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hooke {
namespace {

// Adds the folder of `cgroup` below `mount`, and those above it.
void AddWithParents(const std::string& mount, absl::string_view cgroup, bool old, std::vector<CgroupFolder>& folders) {
  std::string path(cgroup == "/" ? "" : cgroup);
  while (true) {
    folders.push_back({mount + path, old});
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

std::vector<CgroupFolder> CgroupFolders(absl::string_view proc_self_cgroup) {
  std::vector<CgroupFolder> folders;
  for (const absl::string_view line : absl::StrSplit(proc_self_cgroup, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) AddWithParents("/sys/fs/cgroup", parts[2], false, folders);
    for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller != "cpu" && controller != "memory") continue;
      AddWithParents(absl::StrCat("/sys/fs/cgroup/", controller), parts[2], true, folders);
    }
  }
  return folders;
}

std::string ListeningInode(absl::string_view proc_net_tcp, int port) {
  const std::string suffix = absl::StrFormat(":%04X", port);
  for (const absl::string_view line : absl::StrSplit(proc_net_tcp, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    // "SLOT: LOCAL REMOTE STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE"; 0A is LISTEN.
    if (words.size() >= 10 && absl::EndsWith(words[1], suffix) && words[3] == "0A") return std::string(words[9]);
  }
  return "";
}

std::string PidOfSharedFile(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '-');
  const bool is_one = parts.size() == 3 && parts[0] == "hooke" && !parts[1].empty() &&
                      std::all_of(parts[1].begin(), parts[1].end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_one ? std::string(parts[1]) : "none";
}

}  // namespace hooke
