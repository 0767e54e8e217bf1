#include "client/process/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/process/child_process.h"

namespace hooke {
namespace {

constexpr size_t kBytesMax = 64 << 20;
constexpr absl::Duration kStopGrace = absl::Seconds(10);
// Interrupts are checked this often.
constexpr int kTickMs = 100;

// Reads the bytes that have arrived. Returns false if the stream has ended.
bool ReadSome(int fd, std::string& text) {
  pollfd stream = {fd, POLLIN, 0};
  if (poll(&stream, 1, kTickMs) <= 0) return true;
  char buffer[1 << 16];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got > 0) text.append(buffer, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

}  // namespace

absl::StatusOr<ProgramOutput> RunForOutput(const std::vector<std::string>& arguments, Interrupts& interrupts) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make a pipe: ", std::strerror(errno), "; `hooke doctor` checks the limit of open files"));
  }
  const auto close_end = absl::MakeCleanup([&ends] { close(ends[0]); });
  ChildOptions options;
  options.arguments = arguments;
  options.output_fd = ends[1];
  absl::StatusOr<Child> child = Child::Start(options);
  close(ends[1]);
  if (!child.ok()) return child.status();
  ProgramOutput output;
  absl::Time kill_at = absl::InfiniteFuture();
  while (ReadSome(ends[0], output.text)) {
    if (output.text.size() > kBytesMax) {
      return absl::OutOfRangeError(
          absl::StrCat(arguments[0], " prints more than ", kBytesMax, " bytes; are hooke and it of one version?"));
    }
    if (interrupts.WaitFor(absl::ZeroDuration()).has_value() && kill_at == absl::InfiniteFuture()) {
      kill_at = absl::Now() + kStopGrace;
      child->Signal(SIGTERM);
    }
    if (absl::Now() > kill_at) child->Signal(SIGKILL);
  }
  // The program has closed its output but may still run. If it does not end soon, it is killed.
  if (!child->EndsWithin(kStopGrace)) {
    child->Signal(SIGKILL);
    child->EndsWithin(kStopGrace);
  }
  output.exit_code = child->exit_code();
  return output;
}

}  // namespace hooke
