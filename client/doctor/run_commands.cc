#include "client/doctor/run_commands.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "client/process/child_process.h"

namespace hooke {
namespace {

constexpr size_t kOutputMax = 256 << 10;
constexpr absl::Duration kKillGrace = absl::Milliseconds(500);
constexpr absl::Duration kReapGrace = absl::Milliseconds(200);
constexpr int kTickMs = 5;

// One command that has been started.
class Running {
 public:
  explicit Running(const CommandToRun& command) : limit_(command.limit), begun_(absl::Now()) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    fd_ = ends[0];
    // Only our end of the pipe is non-blocking, because many programs cannot write to a non-blocking pipe.
    fcntl(fd_, F_SETFL, O_NONBLOCK);
    ChildOptions options;
    // The shell looks for the program on the PATH, and joins both of its streams.
    options.arguments = {"/bin/sh", "-c", "LC_ALL=C; export LC_ALL; exec \"$@\" 2>&1", "sh"};
    options.arguments.insert(options.arguments.end(), command.arguments.begin(), command.arguments.end());
    options.output_fd = ends[1];
    absl::StatusOr<Child> child = Child::Start(options);
    close(ends[1]);
    if (child.ok()) child_ = std::make_unique<Child>(*std::move(child));
  }
  Running(Running&& other) noexcept
      : limit_(other.limit_),
        begun_(other.begun_),
        fd_(std::exchange(other.fd_, -1)),
        child_(std::move(other.child_)),
        outcome_(std::move(other.outcome_)) {}
  Running& operator=(Running&&) = delete;
  ~Running() {
    if (fd_ >= 0) close(fd_);
    // Destroying a Child waits for its end, which never comes if a disk hangs. The kernel ends such a process when it
    // can.
    if (child_ != nullptr && !child_->EndsWithin(kReapGrace)) static_cast<void>(child_.release());
  }

  int fd() const { return fd_; }

  // Reads what has come, and looks at the clock. Returns false once the command has ended or was given up.
  bool GoesOn() {
    if (child_ == nullptr) return false;
    const bool ended = child_->Ended().has_value();
    Read();  // After the look at the child, so that its last words are read.
    outcome_.took = absl::Now() - begun_;
    if (ended) {
      if (!outcome_.timed_out) outcome_.exit_code = child_->exit_code();
      return false;
    }
    if (outcome_.took < limit_) return true;
    if (!outcome_.timed_out) child_->Signal(SIGTERM);
    outcome_.timed_out = true;
    if (outcome_.took < limit_ + kKillGrace) return true;
    child_->Signal(SIGKILL);
    return false;
  }

  CommandOutcome Take() { return std::move(outcome_); }

 private:
  void Read() {
    char buffer[1 << 14];
    for (ssize_t got = 0; (got = read(fd_, buffer, sizeof(buffer))) > 0;) {
      const size_t room = kOutputMax - outcome_.output.size();
      outcome_.output.append(buffer, std::min(room, static_cast<size_t>(got)));
    }
  }

  const absl::Duration limit_;
  const absl::Time begun_;
  int fd_ = -1;
  std::unique_ptr<Child> child_;
  CommandOutcome outcome_;
};

}  // namespace

std::vector<CommandOutcome> RunCommands(const std::vector<CommandToRun>& commands) {
  std::vector<Running> all;
  all.reserve(commands.size());
  for (const CommandToRun& command : commands) all.emplace_back(command);
  std::vector<bool> done(all.size(), false);
  for (size_t left = all.size(); left > 0;) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (done[i] || all[i].GoesOn()) continue;
      done[i] = true;
      --left;
    }
    if (left > 0) poll(nullptr, 0, kTickMs);
  }
  std::vector<CommandOutcome> outcomes;
  outcomes.reserve(all.size());
  for (Running& one : all) outcomes.push_back(one.Take());
  return outcomes;
}

}  // namespace hooke
