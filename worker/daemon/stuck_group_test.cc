// If a launcher does not end, the daemon reports it and does not wait for ever. In this test the kernel does not hold
// the process. Instead a log sink blocks on the launcher's line, which keeps the daemon from seeing the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "worker/daemon/fake_coordinator.h"
#include "worker/daemon/worker_daemon.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Seconds(60);

class BlockingSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    const absl::string_view text(message.payload.data(), message.payload.size());
    const bool refuses = absl::StrContains(text, "not starting group test-1-0-2: this worker is shutting down");
    if (refuses && !not_started.HasBeenNotified()) not_started.Notify();
    if (!absl::StrContains(text, "I am the launcher")) return;
    reached.Notify();
    released.WaitForNotificationWithTimeout(kLimit);
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

  absl::Notification not_started;
  absl::Notification reached;
  absl::Notification released;
};

// If a killed launcher does not end, the daemon reports it, and StopAll does not wait for it. Once the launcher has
// ended, the group delays nothing any more.
TEST(StuckGroupTest, IsSpokenOfAndNotWaitedForForEver) {
  const std::string folder = fs::absolute(testing::TempDir()).string() + "/stuck" + std::to_string(getpid());
  fs::create_directories(folder);
  const std::string launcher = folder + "/mpirun";
  std::ofstream(launcher) << "#!/bin/sh\necho I am the launcher\nexec sleep 600\n";
  fs::permissions(launcher, fs::perms::owner_all);
  const auto sink = std::make_shared<BlockingSink>();
  FakeCoordinator coordinator({});
  WorkerOptions options;
  options.coordinator = coordinator.address();
  options.name = "w1";
  options.slots = 2;
  options.state_dir = folder + "/state";
  options.launch.mpirun = launcher;
  options.launch.rank_binary = launcher;
  options.launch.environment = {"PATH=/usr/bin:/bin"};
  options.stop_grace = absl::ZeroDuration();
  options.stuck_after = absl::Milliseconds(100);
  options.logger = std::make_shared<spdlog::logger>("test", sink);
  options.logger->set_level(spdlog::level::debug);
  absl::StatusOr<std::unique_ptr<WorkerDaemon>> daemon = WorkerDaemon::Start(std::move(options));
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const v1::WorkerMessage hello = coordinator.WaitFor([](const auto& message) { return message.has_hello(); });
  ASSERT_TRUE(hello.has_hello());

  ASSERT_TRUE(coordinator.Send(StartCommand("run", 1)));
  ASSERT_TRUE(sink->reached.WaitForNotificationWithTimeout(kLimit));
  ASSERT_TRUE(coordinator.Send(StopCommand("enough")));
  const v1::WorkerMessage silence = coordinator.WaitFor([](const v1::WorkerMessage& message) {
    // On a slow machine the group's ranks may be reported silent first, because the launcher starts none.
    return IsSilence(true)(message) && message.event().silence().silence().what().rfind("mpirun", 0) == 0;
  });
  EXPECT_THAT(silence.event().silence().silence().what(),
              testing::MatchesRegex("mpirun \\(pid [0-9]+\\), which was killed and does not end,"));
  EXPECT_EQ((*daemon)->StopAll(absl::Milliseconds(10)),
            absl::DeadlineExceededError("not ended within 10ms: test-1-0-1"));

  // The daemon is shutting down, so it does not answer a command to start a group. The coordinator takes the group for
  // lost with this worker's session, and not for failed.
  ASSERT_TRUE(coordinator.Send(StartCommand("late", 1, /*incarnation=*/2)));
  ASSERT_TRUE(sink->not_started.WaitForNotificationWithTimeout(kLimit));

  sink->released.Notify();
  const v1::WorkerMessage end = coordinator.WaitFor(IsEnded);
  EXPECT_EQ(end.event().group().incarnation(), 1u);
  EXPECT_EQ(end.event().ended().message(), "stopped: enough");
  EXPECT_EQ((*daemon)->StopAll(kLimit), absl::OkStatus());
  daemon->reset();
  fs::remove_all(folder);
}

}  // namespace
}  // namespace hooke
