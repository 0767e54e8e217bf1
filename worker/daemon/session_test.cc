#include "worker/daemon/session.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/null_sink.h"
#include "worker/daemon/fake_coordinator.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

v1::GroupId Id() {
  v1::GroupId id;
  id.set_job_id("test-1");
  id.set_incarnation(1);
  return id;
}

v1::GroupEvent NoticeOf(const std::string& text) {
  v1::GroupEvent event;
  event.mutable_report()->mutable_event()->mutable_notice()->set_text(text);
  return event;
}

v1::GroupEvent Progress(uint64_t step) {
  v1::GroupEvent event;
  event.mutable_report()->mutable_event()->mutable_progress()->set_step(step);
  return event;
}

v1::GroupEvent Ended() {
  v1::GroupEvent event;
  event.mutable_ended()->set_ok(true);
  return event;
}

bool IsHello(const v1::WorkerMessage& message) { return message.has_hello(); }

std::function<bool(const v1::WorkerMessage&)> IsNumber(uint64_t number) {
  return [number](const v1::WorkerMessage& message) { return message.event().number() == number; };
}

// A log sink that calls a function for each line.
class CallingSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit CallingSink(std::function<void()> on_line) : on_line_(std::move(on_line)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg&) override { on_line_(); }
  void flush_() override {}

 private:
  const std::function<void()> on_line_;
};

// A session whose callbacks set fields that the tests look at.
class TestSession {
 public:
  explicit TestSession(const std::string& coordinator,
                       spdlog::sink_ptr sink = std::make_shared<spdlog::sinks::null_sink_mt>()) {
    SessionOptions options;
    options.coordinator = coordinator;
    options.hello.set_name("w1");
    options.machine = "m1";
    options.clock = [this] { return monotonic_ns += 1000; };
    options.heartbeat_every = absl::Milliseconds(50);
    options.welcome_within = absl::Milliseconds(300);
    options.backoff_min = absl::Milliseconds(10);
    options.backoff_max = absl::Milliseconds(50);
    options.logger = std::make_shared<spdlog::logger>("test", std::move(sink));
    SessionCallbacks callbacks;
    callbacks.running_groups = [] { return std::vector<v1::GroupId>(); };
    callbacks.start_group = [this](const v1::StartGroupCommand&) { start.Notify(); };
    callbacks.stop_group = [](const v1::StopGroup&) {};
    callbacks.welcomed = [this] { welcomed.Notify(); };
    callbacks.refused = [this](const absl::Status& why) {
      refusal = why;
      refused.Notify();
    };
    session = std::make_unique<Session>(std::move(options), std::move(callbacks));
    session->Start();
  }

  std::atomic<int64_t> monotonic_ns{0};
  absl::Notification welcomed, start, refused;
  absl::Status refusal;  // Set before `refused` is notified.
  std::unique_ptr<Session> session;
};

// Answers the heartbeat that asks for the time: it came at 5 s by the coordinator's clock. Returns the time that the
// heartbeat gave, once the session has the answer.
int64_t EchoClock(FakeCoordinator& coordinator, TestSession& test) {
  const int64_t sent =
      coordinator.WaitFor([](const v1::WorkerMessage& message) { return message.heartbeat().sent_ns() > 0; })
          .heartbeat()
          .sent_ns();
  v1::WorkerCommand echo;
  echo.mutable_clock()->set_sent_ns(sent);
  echo.mutable_clock()->set_unix_ns(5000000000);
  EXPECT_TRUE(coordinator.Send(echo));
  // This command arrives after the echo.
  EXPECT_TRUE(coordinator.Send(StartCommand("x", 1)));
  EXPECT_TRUE(test.start.WaitForNotificationWithTimeout(absl::Seconds(20)));
  return sent;
}

// Hello comes first, then events in order, log lines and heartbeats. Commands arrive. Events that the coordinator has
// stored are dropped.
TEST(SessionTest, Conversation) {
  FakeCoordinator coordinator({});
  TestSession test(coordinator.address());
  test.session->AddEvent(Id(), NoticeOf("a"));
  test.session->AddLog(Id(), "rank 0", "line");
  EXPECT_EQ(coordinator.WaitFor(IsNumber(1)).event().report().event().notice().text(), "a");
  EXPECT_TRUE(coordinator.WaitFor(HasLogLine("rank 0: line")).has_log());
  EXPECT_TRUE(
      coordinator.WaitFor([](const v1::WorkerMessage& message) { return message.has_heartbeat(); }).has_heartbeat());
  EXPECT_EQ(coordinator.received()[0].hello().name(), "w1");
  EXPECT_TRUE(test.session->Flush(SteadyTime() + absl::Seconds(20)));
  ASSERT_TRUE(coordinator.Send(StartCommand("x", 1)));
  EXPECT_TRUE(test.start.WaitForNotificationWithTimeout(absl::Seconds(20)));
}

// Progress that waits for company shares a message with what comes next, and arrives in order. Without company it comes
// with the next heartbeat.
TEST(SessionTest, ProgressSharesMessages) {
  FakeCoordinator coordinator({});
  TestSession test(coordinator.address());
  ASSERT_TRUE(test.welcomed.WaitForNotificationWithTimeout(absl::Seconds(20)));
  test.session->AddEvent(Id(), Progress(1));
  EXPECT_TRUE(coordinator.WaitFor(IsNumber(1)).has_event());
  for (uint64_t number = 2; number < 200; number += 2) {
    test.session->AddEvent(Id(), Progress(number));
    test.session->AddEvent(Id(), NoticeOf("a"));
    EXPECT_TRUE(coordinator.WaitFor(IsNumber(number + 1)).has_event());
  }
  EXPECT_GT(coordinator.batches(), 10);
  uint64_t last = 0;
  for (const v1::WorkerMessage& message : coordinator.received()) {
    if (!message.has_event()) continue;
    EXPECT_EQ(message.event().number(), last + 1);
    last = message.event().number();
  }
  test.session->AddEvent(Id(), Progress(200));
  EXPECT_TRUE(coordinator.WaitFor(IsNumber(200)).has_event());
  EXPECT_TRUE(test.session->Flush(SteadyTime() + absl::Seconds(20)));
}

// A coordinator of an older version gets each message by itself.
TEST(SessionTest, OlderCoordinator) {
  FakeCoordinator::Options options;
  options.batches = false;
  FakeCoordinator coordinator(options);
  TestSession test(coordinator.address());
  ASSERT_TRUE(test.welcomed.WaitForNotificationWithTimeout(absl::Seconds(20)));
  for (uint64_t step = 1; step <= 20; ++step) {
    test.session->AddEvent(Id(), Progress(step));
    test.session->AddEvent(Id(), NoticeOf("a"));
  }
  test.session->AddEvent(Id(), Ended());
  EXPECT_TRUE(coordinator.WaitFor(IsNumber(41)).event().has_ended());
  EXPECT_TRUE(test.session->Flush(SteadyTime() + absl::Seconds(20)));
  EXPECT_EQ(coordinator.batches(), 0);
}

// The session adds the name of this machine's clock to a profile, and the clock's offset from the heartbeats' round
// trips.
TEST(SessionTest, AddsTheClockToProfiles) {
  FakeCoordinator coordinator({});
  TestSession test(coordinator.address());
  const int64_t sent = EchoClock(coordinator, test);
  ASSERT_GT(sent, 0);
  v1::GroupEvent event;
  event.mutable_report()->mutable_event()->mutable_profile()->set_step_ns(3);
  test.session->AddEvent(Id(), event);
  const v1::RankProfile profile = coordinator.WaitFor(IsNumber(1)).event().report().event().profile();
  EXPECT_EQ(profile.step_ns(), 3u);
  EXPECT_EQ(profile.machine(), "m1");
  ASSERT_TRUE(profile.has_clock());
  EXPECT_NEAR(static_cast<double>(profile.clock().offset_ns()), 5e9 - static_cast<double>(sent), 1e6);
  EXPECT_GT(profile.clock().error_ns(), 0);
}

// A group's start and a rank's first step say when they happened, by the coordinator's clock. Without a round trip of a
// heartbeat they do not.
TEST(SessionTest, AddsTheTimeToStarts) {
  FakeCoordinator coordinator({});
  TestSession test(coordinator.address());
  v1::GroupEvent started;
  started.mutable_started()->set_launcher_pid(7);
  test.session->AddEvent(Id(), started);
  EXPECT_EQ(coordinator.WaitFor(IsNumber(1)).event().unix_us(), 0);
  EchoClock(coordinator, test);
  v1::GroupEvent begun;
  begun.mutable_report()->mutable_event()->mutable_begun()->add_spans();
  test.session->AddEvent(Id(), begun);
  test.session->AddEvent(Id(), NoticeOf("a"));
  EXPECT_NEAR(static_cast<double>(coordinator.WaitFor(IsNumber(2)).event().unix_us()), 5e6, 1000);
  EXPECT_EQ(coordinator.WaitFor(IsNumber(3)).event().unix_us(), 0);
}

// Events that were sent but not stored are sent again, with the same numbers, to a restarted coordinator. Hello names a
// group that ended meanwhile, so that the coordinator does not take it for lost.
TEST(SessionTest, RestartedCoordinatorHearsAgain) {
  FakeCoordinator::Options options;
  options.ack = false;
  auto first = std::make_unique<FakeCoordinator>(options);
  TestSession test(first->address());
  test.session->AddEvent(Id(), NoticeOf("a"));
  EXPECT_TRUE(first->WaitFor(IsNumber(1)).has_event());
  options.port = first->port();
  options.ack = true;
  first.reset();
  test.session->AddEvent(Id(), Ended());
  EXPECT_TRUE(test.session->EndIsPending(Id()));
  FakeCoordinator second(options);
  EXPECT_EQ(second.WaitFor(IsNumber(1)).event().report().event().notice().text(), "a");
  EXPECT_TRUE(second.WaitFor(IsNumber(2)).event().ended().ok());
  const v1::WorkerHello hello = second.WaitFor(IsHello).hello();
  ASSERT_EQ(hello.running_size(), 1);
  EXPECT_EQ(hello.running(0).job_id(), "test-1");
  EXPECT_TRUE(test.session->Flush(SteadyTime() + absl::Seconds(20)));
  EXPECT_FALSE(test.session->EndIsPending(Id()));
}

// The announcement that the worker ends comes before the ends of its groups, and again after a reconnect.
TEST(SessionTest, AnnouncesItsEnd) {
  auto first = std::make_unique<FakeCoordinator>(FakeCoordinator::Options());
  TestSession test(first->address());
  ASSERT_TRUE(test.welcomed.WaitForNotificationWithTimeout(absl::Seconds(20)));
  test.session->AnnounceEnd();
  test.session->AddEvent(Id(), Ended());
  EXPECT_TRUE(first->WaitFor(IsNumber(1)).has_event());
  const std::vector<v1::WorkerMessage> received = first->received();
  const auto ends = [](const v1::WorkerMessage& message) { return message.has_ends(); };
  EXPECT_LT(std::find_if(received.begin(), received.end(), ends),
            std::find_if(received.begin(), received.end(), IsNumber(1)));
  FakeCoordinator::Options options;
  options.port = first->port();
  first.reset();
  FakeCoordinator second(options);
  EXPECT_TRUE(second.WaitFor(ends).has_ends());
}

// A goodbye is the last message, after all events. The session does not connect again.
TEST(SessionTest, SaysGoodbye) {
  FakeCoordinator coordinator({});
  TestSession test(coordinator.address());
  ASSERT_TRUE(test.welcomed.WaitForNotificationWithTimeout(absl::Seconds(20)));
  test.session->AddLog(Id(), "rank 0", "last words");
  EXPECT_TRUE(test.session->Flush(SteadyTime() + absl::Seconds(20)));
  test.session->SayGoodbye(SteadyTime() + absl::Seconds(20));
  test.session.reset();
  const std::vector<v1::WorkerMessage> received = coordinator.received();
  EXPECT_TRUE(received.back().has_goodbye()) << received.back().DebugString();
  EXPECT_EQ(std::count_if(received.begin(), received.end(), IsHello), 1);
}

// If the name is taken, the session is refused and does not try again.
TEST(SessionTest, RefusedAtFirstHello) {
  FakeCoordinator::Options options;
  options.refuse = grpc::Status(grpc::ALREADY_EXISTS, "w1 is connected");
  FakeCoordinator coordinator(options);
  TestSession test(coordinator.address());
  ASSERT_TRUE(test.refused.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(test.refusal.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(test.refusal.message()), HasSubstr("w1 is connected"));
}

// A session whose token is refused goes on trying, and logs the refusal once.
TEST(SessionTest, TokenRefused) {
  FakeCoordinator::Options options;
  options.refuse = grpc::Status(grpc::UNAUTHENTICATED, "no such token");
  FakeCoordinator coordinator(options);
  std::atomic<int> lines{0};
  TestSession test(coordinator.address(), std::make_shared<CallingSink>([&lines] { ++lines; }));
  EXPECT_TRUE(coordinator.WaitForCount(IsHello, 10));
  EXPECT_FALSE(test.refused.HasBeenNotified());
  test.session.reset();
  EXPECT_EQ(lines, 1);
}

// After its first welcome, a session that is refused tries again: a restarted coordinator may still believe in the
// worker's old stream for a moment.
TEST(SessionTest, RefusedLaterTriesAgain) {
  auto first = std::make_unique<FakeCoordinator>(FakeCoordinator::Options());
  TestSession test(first->address());
  ASSERT_TRUE(test.welcomed.WaitForNotificationWithTimeout(absl::Seconds(20)));
  FakeCoordinator::Options options;
  options.port = first->port();
  options.refuse = grpc::Status(grpc::ALREADY_EXISTS, "");
  first.reset();
  {
    FakeCoordinator second(options);
    EXPECT_TRUE(second.WaitFor(IsHello).has_hello());
  }
  options.refuse = grpc::Status::OK;
  FakeCoordinator third(options);
  test.session->AddEvent(Id(), NoticeOf("a"));
  EXPECT_TRUE(third.WaitFor(IsNumber(1)).has_event());
  EXPECT_FALSE(test.refused.HasBeenNotified());
}

// If a coordinator takes the connection but never answers, the session tries again. Its destructor does not wait.
TEST(SessionTest, NoWelcome) {
  FakeCoordinator::Options options;
  options.welcome = false;
  FakeCoordinator coordinator(options);
  TestSession test(coordinator.address());
  EXPECT_TRUE(coordinator.WaitForCount(IsHello, 2));
}

// Lines are logged without a lock, so a slow disk under the log does not delay callers that add events.
TEST(SessionTest, LogsWithoutALock) {
  std::string address;
  { address = FakeCoordinator({}).address(); }
  std::atomic<Session*> session = nullptr;
  absl::Notification logged;
  TestSession test(address, std::make_shared<CallingSink>([&] {
                     if (session == nullptr || logged.HasBeenNotified()) return;
                     std::thread other([&] { session.load()->AddEvent(Id(), NoticeOf("a")); });
                     other.join();
                     logged.Notify();
                   }));
  session = test.session.get();
  EXPECT_TRUE(logged.WaitForNotificationWithTimeout(absl::Seconds(20)));
}

// If nobody listens, the session tries for ever. Its destructor does not wait.
TEST(SessionTest, NobodyThere) {
  std::string address;
  { address = FakeCoordinator({}).address(); }
  TestSession test(address);
  test.session->AddEvent(Id(), Ended());
  EXPECT_FALSE(test.session->Flush(SteadyTime() + absl::Milliseconds(50)));
  EXPECT_FALSE(test.refused.HasBeenNotified());
}

}  // namespace
}  // namespace hooke
