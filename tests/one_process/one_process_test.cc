// Both kinds of daemon run in one process. They do not disturb each other, and none needs a process of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/daemon.h"
#include "worker/daemon/worker_daemon.h"

namespace hooke {
namespace {

using testing::HasSubstr;

class OneProcessTest : public testing::Test {
 protected:
  OneProcessTest() { std::filesystem::remove_all(folder_); }
  ~OneProcessTest() override { std::filesystem::remove_all(folder_); }

  ServerOptions Server(const std::string& name) const {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.state_dir = folder_ + "/" + name;
    options.version = "test";
    options.logger = logger_;
    return options;
  }

  WorkerOptions Worker(const std::string& name, const std::string& coordinator) const {
    WorkerOptions options;
    options.coordinator = coordinator;
    options.name = name;
    options.state_dir = folder_ + "/" + name;
    options.version = "test";
    options.launch.mpirun = options.launch.rank_binary = "/bin/true";
    options.logger = logger_;
    return options;
  }

  const std::string folder_ =
      std::filesystem::absolute(testing::TempDir() + "/one_process").lexically_normal().string();
  const std::shared_ptr<spdlog::logger> logger_ =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
};

// Two servers and two workers in one process make a cluster. Each daemon has its own folder, which a second daemon of
// its kind cannot use meanwhile.
TEST_F(OneProcessTest, HoldsServersAndWorkers) {
  absl::StatusOr<std::unique_ptr<ServerDaemon>> coordinator = ServerDaemon::Start(Server("s1"));
  ASSERT_TRUE(coordinator.ok()) << coordinator.status();
  const std::string address = (*coordinator)->address();
  ServerOptions joining = Server("s2");
  joining.coordinator = address;
  absl::StatusOr<std::unique_ptr<ServerDaemon>> second = ServerDaemon::Start(joining);
  ASSERT_TRUE(second.ok()) << second.status();
  absl::Notification welcomed[2];
  std::unique_ptr<WorkerDaemon> workers[2];
  for (int i = 0; i < 2; ++i) {
    WorkerOptions options = Worker(absl::StrCat("w", i + 1), address);
    options.on_welcome = [&welcome = welcomed[i]] { welcome.Notify(); };
    absl::StatusOr<std::unique_ptr<WorkerDaemon>> worker = WorkerDaemon::Start(std::move(options));
    ASSERT_TRUE(worker.ok()) << worker.status();
    workers[i] = *std::move(worker);
  }
  for (absl::Notification& welcome : welcomed) {
    EXPECT_TRUE(welcome.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  EXPECT_THAT(std::string(ServerDaemon::Start(Server("s1")).status().message()),
              HasSubstr("in use by another hooke-server"));
  EXPECT_THAT(std::string(WorkerDaemon::Start(Worker("w1", address)).status().message()),
              HasSubstr("in use by another hooke-worker"));
}

}  // namespace
}  // namespace hooke
