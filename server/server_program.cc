#include "server/server_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace hooke {

bool WaitUntil(const std::function<bool()>& done, absl::Duration within) {
  const absl::Time end = absl::Now() + within;
  absl::Notification never;
  while (!done()) {
    if (absl::Now() > end) return false;
    never.WaitForNotificationWithTimeout(absl::Milliseconds(10));
  }
  return true;
}

ServerProgram::ServerProgram(const std::string& folder, const std::string& name, const std::vector<std::string>& flags,
                             const std::vector<std::string>& runner)
    : log_(folder + "/" + name + ".log") {
  std::vector<std::string> words = runner;
  words.push_back("server/hooke-server");
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char path[] = "PATH=/usr/bin:/bin";
  char* environment[] = {path, nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  EXPECT_EQ(posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environment), 0);
  posix_spawn_file_actions_destroy(&actions);
}

ServerProgram::~ServerProgram() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void ServerProgram::Signal(int number) { kill(pid_, number); }

int ServerProgram::Wait() {
  int status = 0;
  if (!WaitUntil([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ServerProgram::Output() const {
  std::ifstream file(log_);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace hooke
