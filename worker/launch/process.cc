#include "worker/launch/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "worker/launch/process_tree.h"

namespace hooke {
namespace {

constexpr size_t kLineBytesMax = 64 << 10;
// How often the tree is scanned while nothing ends. A scan remembers processes without our mark in their environment,
// so that they still count if they become orphans later.
constexpr absl::Duration kScanInterval = absl::Seconds(5);
// Limit for killing the tree. Killed processes are gone in milliseconds, unless the kernel holds them.
constexpr absl::Duration kKillLimit = absl::Seconds(5);
constexpr absl::Duration kKillRepeat = absl::Milliseconds(10);
constexpr absl::Duration kDrainLimit = absl::Seconds(2);

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

// One of the child's output streams. It is cut into lines.
struct Output {
  Descriptor read_end;
  Descriptor write_end;
  std::string partial;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status ErrnoStatus(absl::string_view what, int error) {
  const std::string message = absl::StrCat(what, ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

std::string NewMark() {
  std::random_device random;
  const std::string number = absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
  return absl::StrCat("HOOKE_PROCESS_TREE=", getpid(), "-", number);
}

int PollTimeoutMs(absl::Duration left) {
  // The result is rounded up, so that poll does not return too early.
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0, 60000));
}

}  // namespace

// The state and the loop of the process's thread.
class Process::Runner {
 public:
  Runner(Process& process, ProcessOptions options) : process_(process), options_(std::move(options)) {}

  absl::Status Start() {
    if (absl::Status status = OpenPipes(); !status.ok()) return status;
    return Spawn();
  }

  ProcessEnd Run() {
    ProcessTree tree(process_.pid_, mark_);
    next_scan_ = SteadyTime() + kScanInterval;
    while (!Poll(NextTimeout())) Signal(tree);
    ProcessEnd end = Reap();
    KillRest(tree);
    Drain();
    return end;
  }

 private:
  absl::Status OpenPipes() {
    for (Output& output : outputs_) {
      int fds[2];
      if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus("cannot make a pipe", errno);
      output.read_end = Descriptor(fds[0]);
      output.write_end = Descriptor(fds[1]);
      fcntl(fds[0], F_SETFL, O_NONBLOCK);
    }
    return absl::OkStatus();
  }

  // Starts the child. A parent with threads must not fork and then run code in the child. So it spawns setpriv, which
  // sets the parent-death signal and then becomes the command.
  absl::Status Spawn() {
    std::vector<std::string> argv = {"setpriv", "--pdeathsig", "KILL", "--"};
    argv.insert(argv.end(), options_.argv.begin(), options_.argv.end());
    mark_ = NewMark();
    options_.environment.push_back(mark_);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, outputs_[0].write_end.get(), 1);
    posix_spawn_file_actions_adddup2(&actions, outputs_[1].write_end.get(), 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawn_file_actions_addchdir_np(&actions, options_.folder.c_str());
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    // The child's signals are reset, because it would otherwise inherit our blocked and ignored signals.
    sigset_t signals;
    sigemptyset(&signals);
    if (options_.blocks_sigterm) sigaddset(&signals, SIGTERM);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    const int error = posix_spawnp(&process_.pid_, argv[0].c_str(), &actions, &attributes, Pointers(argv).data(),
                                   Pointers(options_.environment).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    for (Output& output : outputs_) output.write_end.Close();
    if (error != 0) {
      return ErrnoStatus(
          absl::StrCat("cannot start ", options_.argv[0], " through setpriv (package util-linux) in ", options_.folder),
          error);
    }
    pid_fd_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process_.pid_, 0)));
    if (pid_fd_.open()) return absl::OkStatus();
    const int open_error = errno;
    kill(process_.pid_, SIGKILL);
    waitpid(process_.pid_, nullptr, 0);
    return ErrnoStatus("cannot watch the started process", open_error);
  }

  absl::Duration NextTimeout() const {
    const absl::Time now = SteadyTime();
    const std::optional<absl::Time> kill_at = process_.kill_at();
    if (!kill_at.has_value()) return next_scan_ - now;
    return std::max(std::min(next_scan_, *kill_at) - now, kKillRepeat);
  }

  // Waits for output, a wake-up, the process's end or the timeout, and reads the output. Returns true if the process
  // has ended.
  bool Poll(absl::Duration timeout) {
    std::array<pollfd, 4> polled = {{{outputs_[0].read_end.get(), POLLIN, 0},
                                     {outputs_[1].read_end.get(), POLLIN, 0},
                                     {pid_fd_.get(), POLLIN, 0},
                                     {process_.wake_fd_, POLLIN, 0}}};
    if (poll(polled.data(), polled.size(), PollTimeoutMs(timeout)) <= 0) return false;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (polled[i].revents != 0) Read(outputs_[i]);
    }
    if (polled[3].revents != 0) {
      uint64_t count;
      if (read(process_.wake_fd_, &count, sizeof count) < 0) return polled[2].revents != 0;
    }
    return polled[2].revents != 0;
  }

  void Signal(ProcessTree& tree) {
    const absl::Time now = SteadyTime();
    const std::optional<absl::Time> kill_at = process_.kill_at();
    if (kill_at.has_value() && now >= *kill_at) {
      tree.Signal(SIGKILL);
      // KillRest kills the processes that were born during the scan.
      kill(process_.pid_, SIGKILL);
      next_scan_ = now + kScanInterval;
    } else if (kill_at.has_value() && !asked_) {
      asked_ = true;
      tree.Signal(SIGTERM);
      tree.ContinueStopped();  // A stopped process could not handle SIGTERM.
    } else if (now >= next_scan_) {
      tree.ReapOrphans();
      next_scan_ = now + kScanInterval;
    }
  }

  ProcessEnd Reap() {
    siginfo_t info = {};
    ProcessEnd end;
    // WNOWAIT leaves the root a zombie until KillRest.
    if (waitid(P_PID, process_.pid_, &info, WEXITED | WNOWAIT) != 0) return {255, 0};
    if (info.si_code == CLD_EXITED) {
      end.exit_status = info.si_status;
    } else {
      end.signal = info.si_status;
    }
    return end;
  }

  // Kills all other processes of the tree, then reaps the root. The root stays a zombie until its tree is gone, so that
  // nothing else can take its id and group meanwhile.
  void KillRest(ProcessTree& tree) {
    const absl::Time deadline = SteadyTime() + kKillLimit;
    while (tree.Signal(SIGKILL) > 0 && SteadyTime() < deadline) {
      tree.ReapOrphans();
      // Some of the processes are not our children, and nothing tells us when they end.
      poll(nullptr, 0, 2);
    }
    tree.ReapOrphans();
    waitpid(process_.pid_, nullptr, 0);
  }

  void Drain() {
    const absl::Time deadline = SteadyTime() + kDrainLimit;
    for (Output& output : outputs_) {
      while (output.read_end.open() && SteadyTime() < deadline) {
        pollfd polled = {output.read_end.get(), POLLIN, 0};
        if (poll(&polled, 1, PollTimeoutMs(deadline - SteadyTime())) > 0) Read(output);
      }
      if (!output.partial.empty()) Deliver(output.partial);
      output.partial.clear();
    }
  }

  // Reads the stream once, and closes it at its end.
  void Read(Output& output) {
    char bytes[16 << 10];
    const ssize_t count = read(output.read_end.get(), bytes, sizeof bytes);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) output.read_end.Close();
    if (count <= 0) return;
    output.partial.append(bytes, count);
    size_t begin = 0;
    for (size_t end; (end = output.partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Deliver(absl::string_view(output.partial).substr(begin, end - begin));
    }
    output.partial.erase(0, begin);
    if (output.partial.size() < kLineBytesMax) return;
    Deliver(output.partial);
    output.partial.clear();
  }

  void Deliver(absl::string_view line) {
    if (options_.on_line) options_.on_line(line);
  }

  Process& process_;
  ProcessOptions options_;
  std::string mark_;
  std::array<Output, 2> outputs_;
  Descriptor pid_fd_;
  absl::Time next_scan_;
  bool asked_ = false;  // Whether SIGTERM was sent.
};

std::string SignalText(int signal) {
  const char* name = sigdescr_np(signal);
  return absl::StrCat("signal ", signal, " (", name == nullptr ? "unknown" : name, ")");
}

std::string ToString(const ProcessEnd& end) {
  if (end.signal != 0) return absl::StrCat("ended by ", SignalText(end.signal));
  return absl::StrCat("exited with status ", end.exit_status);
}

absl::StatusOr<std::unique_ptr<Process>> Process::Start(ProcessOptions options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("no command to start");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return ErrnoStatus("cannot become the reaper of orphans", errno);
  std::unique_ptr<Process> process(new Process);
  process->wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (process->wake_fd_ < 0) return ErrnoStatus("cannot make an eventfd", errno);
  process->thread_ = std::thread([process = process.get(), options = std::move(options)]() mutable {
    Runner runner(*process, std::move(options));
    const absl::Status status = runner.Start();
    if (!status.ok()) process->pid_ = 0;
    {
      absl::MutexLock lock(&process->mutex_);
      process->started_ = status;
    }
    if (!status.ok()) return;
    const ProcessEnd end = runner.Run();
    absl::MutexLock lock(&process->mutex_);
    process->end_ = end;
    process->ended_.SignalAll();
  });
  if (absl::Status status = process->AwaitStarted(); !status.ok()) return status;
  return process;
}

absl::Status Process::AwaitStarted() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](std::optional<absl::Status>* started) { return started->has_value(); }, &started_));
  return *started_;
}

Process::~Process() {
  if (pid_ != 0) Stop(absl::ZeroDuration());
  if (thread_.joinable()) thread_.join();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void Process::Stop(absl::Duration grace) {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time kill_at = SteadyTime() + grace;
    kill_at_ = kill_at_.has_value() ? std::min(*kill_at_, kill_at) : kill_at;
  }
  WakeRunner();
}

std::optional<ProcessEnd> Process::Wait(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const auto has_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end_.has_value(); };
  ended_.Await(mutex_, deadline, has_ended);
  return end_;
}

void Process::WakeRunner() {
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0) return;  // The counter is full, so the thread is awake already.
}

std::optional<absl::Time> Process::kill_at() const {
  absl::MutexLock lock(&mutex_);
  return kill_at_;
}

std::string OutputOf(std::vector<std::string> argv, std::vector<std::string> environment, absl::Duration limit) {
  std::string text;
  ProcessOptions options;
  options.argv = std::move(argv);
  options.environment = std::move(environment);
  options.folder = "/";
  options.on_line = [&text](absl::string_view line) { absl::StrAppend(&text, line, "\n"); };
  const absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(std::move(options));
  if (!process.ok()) return "";
  const std::optional<ProcessEnd> end = (*process)->Wait(SteadyTime() + limit);
  return end.has_value() && end->ok() ? text : "";
}

}  // namespace hooke
