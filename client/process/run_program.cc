#include "client/process/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"

namespace hooke {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Reads the bytes that have arrived. Returns false if the stream has ended.
bool Append(int fd, std::string& text) {
  char buffer[4096];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got > 0) text.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

}  // namespace

Program::Program(const ProgramOptions& options) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  const std::vector<char*> arguments = Pointers(options.arguments);
  const std::vector<char*> environment = Pointers(options.environment);
  if (posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data()) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  out_fd_ = out[0];
  err_fd_ = err[0];
}

Program::~Program() {
  Wait(absl::ZeroDuration());
  for (const int fd : {out_fd_, err_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void Program::Signal(int signal) {
  if (pid_ > 0) kill(pid_, signal);
}

bool Program::ReadSome(absl::Duration wait) {
  pollfd streams[2] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
  if (poll(streams, 2, static_cast<int>(absl::ToInt64Milliseconds(wait))) <= 0) return true;
  if (streams[0].revents != 0 && !Append(out_fd_, result_.out)) close(std::exchange(out_fd_, -1));
  if (streams[1].revents != 0 && !Append(err_fd_, result_.err)) close(std::exchange(err_fd_, -1));
  return out_fd_ >= 0 || err_fd_ >= 0;
}

bool Program::Prints(const std::string& text, absl::Duration wait) {
  const absl::Time deadline = absl::Now() + wait;
  while (result_.out.find(text) == std::string::npos) {
    if (absl::Now() > deadline || !ReadSome(absl::Milliseconds(50))) break;
  }
  return result_.out.find(text) != std::string::npos;
}

ProgramOutcome Program::Wait(absl::Duration wait) {
  const absl::Time deadline = absl::Now() + wait;
  int status = 0;
  bool ended = false;
  while (pid_ > 0 && !ended) {
    ReadSome(absl::Milliseconds(20));
    ended = waitpid(pid_, &status, WNOHANG) == pid_;
    if (!ended && out_fd_ < 0 && err_fd_ < 0) absl::SleepFor(absl::Milliseconds(5));
    if (!ended && absl::Now() > deadline) kill(pid_, SIGKILL);
  }
  if (!ended) return result_;
  pid_ = -1;
  result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  // Reads only the bytes that have arrived. The program's children may hold the streams open, so this does not wait for
  // the streams' end. All output of the program itself has arrived already.
  pollfd streams[2] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
  while (poll(streams, 2, 0) > 0 && ReadSome(absl::ZeroDuration())) {
    streams[0].fd = out_fd_;
    streams[1].fd = err_fd_;
  }
  return result_;
}

ProgramOutcome RunProgram(const ProgramOptions& options) { return Program(options).Wait(); }

}  // namespace hooke
