#include "worker/launch/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "worker/launch/proc_file.h"

namespace hooke {
namespace {

// A process is 'X' for a moment while it is reaped.
bool IsDead(const ProcessStat& process) { return process.state == 'Z' || process.state == 'X'; }

std::vector<ProcessStat> AllProcesses() {
  std::vector<ProcessStat> processes;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return processes;
  while (const dirent* entry = readdir(folder)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    if (std::optional<ProcessStat> stat = ReadProcessStat(pid); stat.has_value()) processes.push_back(*stat);
  }
  closedir(folder);
  return processes;
}

bool HasMark(pid_t pid, const std::string& mark) {
  const std::string environment = ReadProcFile(pid, "environ").value_or("");
  for (absl::string_view variable : absl::StrSplit(environment, '\0')) {
    if (variable == mark) return true;
  }
  return false;
}

// Signals the process only if it is still the one that the scan saw. The handle (pidfd) always refers to one process.
// Its start time is then compared with that of the scan.
void SignalProcess(const ProcessStat& process, int signal) {
  // Called through syscall, because the header of glibc 2.36 declares these functions for C only.
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (handle < 0) return;
  const std::optional<ProcessStat> now = ReadProcessStat(process.pid);
  if (now.has_value() && now->start_ticks == process.start_ticks)
    syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0);
  close(handle);
}

}  // namespace

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  const std::string text = ReadProcFile(pid, "stat").value_or("");
  // The file is "pid (name) state ppid ...". The name may hold any character, also ')'.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  const std::vector<absl::string_view> fields = absl::StrSplit(absl::string_view(text).substr(name_end + 2), ' ');
  ProcessStat stat;
  stat.pid = pid;
  if (fields.size() < 20 || fields[0].size() != 1) return std::nullopt;
  stat.state = fields[0][0];
  if (!absl::SimpleAtoi(fields[1], &stat.parent)) return std::nullopt;
  if (!absl::SimpleAtoi(fields[19], &stat.start_ticks)) return std::nullopt;
  return stat;
}

ProcessTree::ProcessTree(pid_t root, std::string mark) : root_(root), mark_(std::move(mark)) {
  if (std::optional<ProcessStat> stat = ReadProcessStat(root); stat.has_value())
    known_.insert({root, stat->start_ticks});
}

std::vector<ProcessStat> ProcessTree::Refresh() {
  const std::vector<ProcessStat> all = AllProcesses();
  absl::flat_hash_map<pid_t, std::vector<const ProcessStat*>> children;
  std::vector<const ProcessStat*> found;
  const pid_t self = getpid();
  for (const ProcessStat& process : all) {
    children[process.parent].push_back(&process);
    const bool orphan = process.parent == self || process.parent == 1;
    if (known_.contains({process.pid, process.start_ticks}) || (orphan && HasMark(process.pid, mark_))) {
      found.push_back(&process);
    }
  }
  absl::flat_hash_set<Key> seen;
  std::vector<ProcessStat> alive;
  while (!found.empty()) {
    const ProcessStat* process = found.back();
    found.pop_back();
    if (!seen.insert({process->pid, process->start_ticks}).second) continue;
    if (!IsDead(*process)) alive.push_back(*process);
    const auto below = children.find(process->pid);
    if (below != children.end()) found.insert(found.end(), below->second.begin(), below->second.end());
  }
  known_ = std::move(seen);
  return alive;
}

int ProcessTree::Signal(int signal) {
  const std::vector<ProcessStat> alive = Refresh();
  for (const ProcessStat& process : alive) SignalProcess(process, signal);
  return static_cast<int>(alive.size());
}

void ProcessTree::ContinueStopped() {
  for (const ProcessStat& process : Refresh()) {
    if (process.state == 'T') SignalProcess(process, SIGCONT);
  }
}

void ProcessTree::ReapOrphans() {
  Refresh();
  for (const Key& key : known_) {
    if (key.first == root_) continue;
    const std::optional<ProcessStat> stat = ReadProcessStat(key.first);
    if (!stat.has_value() || stat->start_ticks != key.second) continue;
    if (stat->parent == getpid() && stat->state == 'Z') waitpid(key.first, nullptr, WNOHANG);
  }
}

}  // namespace hooke
