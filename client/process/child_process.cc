#include "client/process/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace hooke {
namespace {

// Replaces the child's image by the program. The function runs in the child between fork and exec, where only
// async-signal-safe calls are allowed. Returns only on failure, with the errno.
int BecomeProgram(char* const* arguments, int out_fd, int err_fd, int null_fd, pid_t parent) {
  // Ctrl-C in a terminal signals the whole foreground group. Only this process should get it, to stop its children in
  // order.
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  if (getppid() != parent) return ESRCH;  // The parent ended before prctl took effect.
  // The child's signals are reset, because exec keeps blocked and ignored signals, and this process blocks some
  // (interrupts.h).
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 || dup2(err_fd, STDERR_FILENO) < 0)
    return errno;
  execv(arguments[0], arguments);
  return errno;
}

int OpenLog(const std::string& path) {
  rename(path.c_str(), absl::StrCat(path, ".1").c_str());  // Fails harmlessly if there is no old log.
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

std::string EndText(int status) {
  if (WIFEXITED(status)) return absl::StrCat("exit status ", WEXITSTATUS(status));
  return absl::StrCat("killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
}

}  // namespace

absl::StatusOr<Child> Child::Start(const ChildOptions& options) {
  const bool logs = options.output_fd < 0;
  const int log_fd = logs ? OpenLog(options.log_path) : -1;
  if (logs && log_fd < 0)
    return absl::FailedPreconditionError(absl::StrCat(options.log_path, ": cannot be opened: ", std::strerror(errno),
                                                      "; make room, or choose another folder with --state-dir"));
  const int out_fd = logs ? log_fd : options.output_fd;
  const int err_fd = logs ? log_fd : STDERR_FILENO;
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  // A pipe through which the child sends the errno of a failed exec. A successful exec closes it.
  int started[2];
  if (null_fd < 0 || pipe2(started, O_CLOEXEC) != 0) {
    const int error = errno;
    for (const int fd : {log_fd, null_fd}) {
      if (fd >= 0) close(fd);
    }
    return absl::ResourceExhaustedError(absl::StrCat("cannot start ", options.arguments[0], ": ", std::strerror(error),
                                                     "; `hooke doctor` checks the limits of this machine"));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    const int error = BecomeProgram(arguments.data(), out_fd, err_fd, null_fd, parent);
    const ssize_t ignored = write(started[1], &error, sizeof(error));
    _exit(ignored < 0 ? 126 : 127);
  }
  int error = pid < 0 ? errno : 0;
  if (logs) close(log_fd);
  close(null_fd);
  close(started[1]);
  if (pid > 0 && read(started[0], &error, sizeof(error)) == static_cast<ssize_t>(sizeof(error)))
    waitpid(pid, nullptr, 0);
  close(started[0]);
  if (error != 0)
    return absl::FailedPreconditionError(absl::StrCat("cannot start ", options.arguments[0], ": ", std::strerror(error),
                                                      "; `hooke doctor` checks this machine"));
  return Child(pid);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), ended_(std::move(other.ended_)), exit_code_(other.exit_code_) {}

Child::~Child() {
  if (pid_ < 0 || ended_.has_value()) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

const std::optional<std::string>& Child::Ended() {
  int status = 0;
  if (!ended_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    ended_ = EndText(status);
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return ended_;
}

bool Child::EndsWithin(absl::Duration wait) {
  const absl::Time deadline = absl::Now() + wait;
  while (!Ended().has_value()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

void Child::Signal(int signal) {
  if (Ended().has_value()) return;
  // The child makes its group first. Until then only the child itself exists, and gets the signal alone.
  if (kill(-pid_, signal) != 0) kill(pid_, signal);
}

std::string EndOfLog(const std::string& log_path) {
  constexpr size_t kLines = 5;
  std::ifstream in(log_path);
  std::deque<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(absl::StrCat("  ", line));
    if (lines.size() > kLines) lines.pop_front();
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace hooke
