#include "worker/report/reporter.h"

#include <grpcpp/grpcpp.h>
#include <sched.h>
#include <stdlib.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "clocks/steady_time.h"
#include "clocks/test_wall_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/profile/profile.h"
#include "proto/worker.grpc.pb.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

// A daemon's side of RankEvents. It keeps the events that it gets.
class FakeDaemon : public v1::RankEvents::CallbackService {
 public:
  // `leave` is the first command's RankCommand.leave.
  explicit FakeDaemon(std::string leave = "") : leave_(std::move(leave)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("unix:", socket_), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeDaemon() override {
    Stop();
    std::filesystem::remove_all(folder_);
  }

  const std::string& socket() const { return socket_; }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  // Waits until `count` events of a kind have come.
  std::vector<v1::RankEvent> Await(v1::RankEvent::EventCase kind, size_t count) {
    absl::MutexLock lock(&mutex_);
    auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Of(kind).size() >= count; };
    mutex_.AwaitWithTimeout(absl::Condition(&enough), kPatience);
    return Of(kind);
  }
  std::vector<v1::RankEvent> All() {
    absl::MutexLock lock(&mutex_);
    return events_;
  }

 private:
  class Reactor : public grpc::ServerBidiReactor<v1::RankEvent, v1::RankCommand> {
   public:
    explicit Reactor(FakeDaemon* daemon) : daemon_(daemon) {
      command_.set_leave(daemon_->leave_);
      StartRead(&event_);
      StartWrite(&command_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      {
        absl::MutexLock lock(&daemon_->mutex_);
        daemon_->events_.push_back(event_);
      }
      StartRead(&event_);
    }
    void OnDone() override { delete this; }

   private:
    FakeDaemon* const daemon_;
    v1::RankEvent event_;
    v1::RankCommand command_;
  };

  grpc::ServerBidiReactor<v1::RankEvent, v1::RankCommand>* Report(grpc::CallbackServerContext*) override {
    return new Reactor(this);
  }
  std::vector<v1::RankEvent> Of(v1::RankEvent::EventCase kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<v1::RankEvent> some;
    for (const v1::RankEvent& event : events_) {
      if (event.event_case() == kind) some.push_back(event);
    }
    return some;
  }

  static std::string MakeFolder() {
    char folder[] = "/tmp/hooke-rank-XXXXXX";
    return mkdtemp(folder);
  }

  // TempDir's path may be too long: a Unix socket's path has at most 107 bytes.
  const std::string folder_ = MakeFolder();
  const std::string socket_ = folder_ + "/s";
  const std::string leave_;
  absl::Mutex mutex_;
  std::vector<v1::RankEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

ReporterOptions Options(std::unique_ptr<EventSink> sink, absl::Duration interval) {
  ReporterOptions options;
  options.hello.set_rank(3);
  options.hello.set_ranks(4);
  options.hello.set_pid(77);
  options.interval = interval;
  options.close_timeout = kPatience;
  options.sinks.push_back(std::move(sink));
  return options;
}

void Never(const std::string& why) { ADD_FAILURE() << "the stream broke: " << why; }

// A daemon gets hello first. Then it gets progress again and again, even if no step ends, and notices as they come. The
// end comes last.
TEST(ReporterTest, TellsTheDaemonEverything) {
  FakeDaemon daemon;
  {
    Reporter reporter(Options(DialDaemon(daemon.socket(), Never), absl::Milliseconds(5)));
    reporter.Enter(v1::RankProgress::COLLECTIVE);
    EXPECT_GE(daemon.Await(v1::RankEvent::kProgress, 4).size(), 4u);
    reporter.Notice("something");
    v1::CenterEvaluated evaluated;
    evaluated.set_accuracy(0.5);
    reporter.Evaluated(evaluated);
    v1::MeasuredLinks links;
    links.add_links()->set_peer_rank(2);
    reporter.Links(links);
    reporter.Done(12);
  }
  std::vector<v1::RankEvent> all = daemon.All();
  ASSERT_GE(all.size(), 8u);
  EXPECT_EQ(all.front().hello().rank(), 3u);
  EXPECT_EQ(all.front().hello().pid(), 77);
  EXPECT_EQ(all.back().done().step(), 12u);
  EXPECT_TRUE(all[all.size() - 2].has_progress());
  EXPECT_EQ(all[all.size() - 2].progress().phase(), v1::RankProgress::COLLECTIVE);
  EXPECT_EQ(daemon.Await(v1::RankEvent::kNotice, 1).at(0).notice().text(), "something");
  EXPECT_EQ(daemon.Await(v1::RankEvent::kEvaluated, 1).at(0).evaluated().accuracy(), 0.5);
  EXPECT_EQ(daemon.Await(v1::RankEvent::kLinks, 1).at(0).links().links(0).peer_rank(), 2u);
}

// A rank learns from its daemon that the group is to leave.
TEST(ReporterTest, LearnsThatTheGroupIsToLeave) {
  FakeDaemon daemon("the node is drained");
  Reporter reporter(Options(DialDaemon(daemon.socket(), Never), absl::Hours(1)));
  const absl::Time end = absl::Now() + kPatience;
  while (reporter.LeaveReason().empty() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(reporter.LeaveReason(), "the node is drained");
}

// A failure reaches the daemon with its code before the rank ends.
TEST(ReporterTest, TellsTheFailure) {
  FakeDaemon daemon;
  { Reporter(Options(DialDaemon(daemon.socket(), Never), absl::Hours(1))).Failed(absl::DataLossError("cut short")); }
  v1::RankEvent last = daemon.All().back();
  EXPECT_EQ(last.failed().code(), static_cast<int32_t>(absl::StatusCode::kDataLoss));
  EXPECT_EQ(last.failed().message(), "cut short");
}

// When the daemon goes away, the rank is told at once, although it has nothing to send.
TEST(ReporterTest, NoticesThatTheDaemonIsGone) {
  FakeDaemon daemon;
  absl::Notification broken;
  std::string reason;
  Reporter reporter(Options(DialDaemon(daemon.socket(),
                                       [&](const std::string& why) {
                                         reason = why;
                                         broken.Notify();
                                       }),
                            absl::Hours(1)));
  daemon.Await(v1::RankEvent::kHello, 1);
  daemon.Stop();
  ASSERT_TRUE(broken.WaitForNotificationWithTimeout(kPatience));
  EXPECT_THAT(reason, HasSubstr(daemon.socket()));
}

// If nobody listens on the socket, the daemon is reported gone.
TEST(ReporterTest, NoDaemonAtAll) {
  absl::Notification broken;
  Reporter reporter(
      Options(DialDaemon("/tmp/hooke-rank-nobody.sock", [&](const std::string&) { broken.Notify(); }), absl::Hours(1)));
  EXPECT_TRUE(broken.WaitForNotificationWithTimeout(kPatience));
}

// A sink that takes no events. The reporter must end in spite of it, and the trainer must never wait for it.
class StuckSink : public EventSink {
 public:
  bool Send(const v1::RankEvent&) override {
    cancelled_.WaitForNotification();
    return false;
  }
  void Close(absl::Duration) override {}
  void Cancel() override { cancelled_.Notify(); }

 private:
  absl::Notification cancelled_;
};
TEST(ReporterTest, StuckReceiverHoldsUpNobody) {
  ReporterOptions options = Options(std::make_unique<StuckSink>(), absl::Milliseconds(1));
  options.close_timeout = absl::Milliseconds(20);
  Reporter reporter(std::move(options));
  for (int i = 0; i < 10000; ++i) reporter.Notice("again");
  reporter.Done(1);
}

// A sink that counts how often it gets progress.
class CountingSink : public EventSink {
 public:
  explicit CountingSink(std::atomic<int>& count) : count_(count) {}
  bool Send(const v1::RankEvent& event) override {
    count_ += event.has_progress() ? 1 : 0;
    return true;
  }
  void Close(absl::Duration) override {}
  void Cancel() override {}

 private:
  std::atomic<int>& count_;
};

// Progress goes on when somebody sets the machine's clock back by an hour.
TEST(ReporterTest, AClockThatIsSetBackDelaysNothing) {
  std::atomic<int> count{0};
  Reporter reporter(Options(std::make_unique<CountingSink>(count), absl::Milliseconds(5)));
  const auto count_to = [&count](int most) {
    const absl::Time end = SteadyTime() + kPatience;
    while (count < most && SteadyTime() < end) sched_yield();
    return count >= most;
  };
  EXPECT_TRUE(count_to(2));
  StepWallClock(-absl::Hours(1));
  EXPECT_TRUE(count_to(count + 5));
  StepWallClock(absl::Hours(1));
}

// There is one line of JSON for each event, with the names of the proto.
TEST(ReporterTest, JsonLines) {
  std::ostringstream out;
  {
    Reporter reporter(Options(MakeJsonSink(out), absl::Hours(1)));
    reporter.ReportStep({.step = 5, .epoch = 0.5, .loss = 1.5f, .samples = 64});
    reporter.Done(5);
  }
  EXPECT_THAT(out.str(), HasSubstr("\"progress\":{\"step\":\"5\""));
  EXPECT_THAT(out.str(), HasSubstr("{\"done\":{\"step\":\"5\"}}\n"));
}

// Rank 0 reports how it came to its first step, once and at once, behind a progress that has the step. Other ranks do
// not.
TEST(ReporterTest, TellsHowItBegan) {
  FakeDaemon daemon;
  for (const uint32_t rank : {0u, 3u}) {
    ReporterOptions options = Options(DialDaemon(daemon.socket(), [](const std::string&) {}), absl::Hours(1));
    options.hello.set_rank(rank);
    options.start.Begin(v1::LifeSpan::LOADED, SteadyTime() - absl::Seconds(1));
    Reporter reporter(std::move(options));
    reporter.BeginStart(v1::LifeSpan::DATA);
    reporter.Enter(v1::RankProgress::ATTACHING);
    reporter.Enter(v1::RankProgress::COMPUTE);
    for (uint64_t step = 1; step <= 3; ++step) {
      reporter.ReportStep({.step = step, .epoch = 0.5, .loss = 1.5f, .samples = 64});
      if (step == 1 && rank == 0) daemon.Await(v1::RankEvent::kBegun, 1);
    }
    reporter.Done(3);
  }
  daemon.Await(v1::RankEvent::kDone, 2);
  const std::vector<v1::RankEvent> all = daemon.All();
  std::vector<int> kinds;
  kinds.reserve(all.size());
  for (const v1::RankEvent& event : all) kinds.push_back(event.event_case());
  EXPECT_THAT(kinds, ElementsAre(v1::RankEvent::kHello, v1::RankEvent::kProgress, v1::RankEvent::kBegun,
                                 v1::RankEvent::kProgress, v1::RankEvent::kDone, v1::RankEvent::kHello,
                                 v1::RankEvent::kProgress, v1::RankEvent::kDone));
  EXPECT_EQ(all.at(1).progress().step(), 1u);
  const auto& spans = all.at(2).begun().spans();
  ASSERT_EQ(spans.size(), 4);
  EXPECT_EQ(spans[0].what(), v1::LifeSpan::LOADED);
  EXPECT_GE(spans[0].duration_us(), 1000000u);
  EXPECT_EQ(spans[1].what(), v1::LifeSpan::DATA);
  EXPECT_EQ(spans[2].what(), v1::LifeSpan::ATTACHED);
  EXPECT_EQ(spans[3].what(), v1::LifeSpan::FIRST_STEP);
  EXPECT_EQ(spans[3].ago_us(), spans[3].duration_us());
}

// A profile is sent once there has been a collective, and again before the end. The profile counts the phases of a step
// as time in steps.
TEST(ReporterTest, SendsTheProfile) {
  FakeDaemon daemon;
  ProfileOptions profile;
  std::atomic<int64_t> now{1000};
  profile.clock = [&now] { return now.load(); };
  ReporterOptions options = Options(DialDaemon(daemon.socket(), Never), absl::Milliseconds(5));
  options.profile = std::make_shared<ProfileRecorder>(profile);
  options.profile_interval = absl::Milliseconds(5);
  ProfileLane* lane = options.profile->AddLane();
  {
    Reporter reporter(std::move(options));
    reporter.SetPlan({.step = 7, .steps_total = 9, .epoch = 0});
    reporter.Enter(v1::RankProgress::ATTACHING);
    now = 2000;
    reporter.Enter(v1::RankProgress::COMPUTE);
    now = 2500;
    daemon.Await(v1::RankEvent::kProgress, 3);
    EXPECT_TRUE(daemon.Await(v1::RankEvent::kProfile, 0).empty());
    lane->Record({Operation::kAllReduce, false, 64, 2100, 2200});
    daemon.Await(v1::RankEvent::kProfile, 2);
    reporter.Enter(v1::RankProgress::FINISHING);
    reporter.Done(9);
  }
  const std::vector<v1::RankEvent> all = daemon.All();
  ASSERT_GE(all.size(), 3u);
  EXPECT_TRUE(all.back().has_done());
  const v1::RankProfile& last = all[all.size() - 2].profile();
  EXPECT_EQ(last.step_ns(), 500u);
  ASSERT_EQ(last.collectives_size(), 1);
  EXPECT_EQ(last.collectives(0).operation(), v1::ALL_REDUCE);
  ASSERT_EQ(last.events_size(), 3);
  EXPECT_EQ(last.events(1).phase(), v1::RankProgress::COMPUTE);
  EXPECT_EQ(last.events(1).step(), 7u);
}

// The time between profiles doubles with each one. So their number grows with the logarithm of the time.
TEST(ReporterTest, ProfilesBecomeRare) {
  FakeDaemon daemon;
  ReporterOptions options = Options(DialDaemon(daemon.socket(), Never), absl::Milliseconds(5));
  options.profile = std::make_shared<ProfileRecorder>(ProfileOptions{.clock = [] { return int64_t{1000}; }});
  options.profile_interval = absl::Milliseconds(10);
  options.profile->AddLane()->Record({Operation::kAllReduce, false, 64, 100, 200});
  const absl::Time begin = absl::Now();
  Reporter reporter(std::move(options));
  daemon.Await(v1::RankEvent::kProgress, 60);
  const size_t profiles = daemon.Await(v1::RankEvent::kProfile, 3).size();
  // One after 2 ms, one 10 ms later, one 20 ms later, ...
  EXPECT_LE(static_cast<double>(profiles), 2 + std::log2(1 + (absl::Now() - begin) / absl::Milliseconds(10)));
}

// The times of the phases add up, with that of the current phase. The rate is that of the last second, and falls while
// no step ends.
TEST(ProgressMeterTest, AddsUp) {
  const absl::Time start = absl::FromUnixSeconds(1000);
  ProgressMeter meter(start);
  EXPECT_EQ(meter.Snapshot(start).phase(), v1::RankProgress::STARTING);
  EXPECT_TRUE(std::isnan(meter.Snapshot(start).loss()));
  meter.SetPlan({.step = 100, .steps_total = 200, .epoch = 1});
  absl::Time now = start;
  for (uint64_t i = 1; i <= 30; ++i) {
    meter.Enter(v1::RankProgress::COMPUTE, now);
    now += absl::Milliseconds(80);
    meter.Enter(v1::RankProgress::COLLECTIVE, now);
    now += absl::Milliseconds(20);
    meter.ReportStep({.step = 100 + i, .epoch = 1, .loss = 2, .samples = 10}, now);
  }
  meter.Enter(v1::RankProgress::EXCHANGE, now);
  meter.AddExchange(true);
  meter.AddExchange(false);
  v1::RankProgress progress = meter.Snapshot(now + absl::Milliseconds(500));
  EXPECT_EQ(progress.step(), 130u);
  EXPECT_EQ(progress.steps_total(), 200u);
  EXPECT_NEAR(progress.compute_seconds(), 2.4, 1e-9);
  EXPECT_NEAR(progress.collective_seconds(), 0.6, 1e-9);
  EXPECT_NEAR(progress.exchange_seconds(), 0.5, 1e-9);
  EXPECT_NEAR(progress.phase_seconds(), 0.5, 1e-9);
  EXPECT_NEAR(progress.samples_per_s(), 100, 1e-6);
  EXPECT_EQ(progress.loss(), 2);
  EXPECT_EQ(progress.exchanges(), 2u);
  EXPECT_EQ(progress.exchange_failures(), 1u);
  EXPECT_LT(meter.Snapshot(now + absl::Seconds(9)).samples_per_s(), 15);
}

// Progress names absent servers, and counts exchanges that missed a server on another rank of the group.
TEST(ProgressMeterTest, TellsWhatIsMissed) {
  ProgressMeter meter(absl::FromUnixSeconds(1000));
  meter.AddExchange(true);
  meter.AddMissedByOthers();
  meter.SetAbsent("b:2", absl::FromUnixSeconds(1001));
  meter.SetAbsent("a:1", absl::FromUnixSeconds(1002));
  v1::RankProgress progress = meter.Snapshot(absl::FromUnixSeconds(1003));
  EXPECT_EQ(progress.exchanges(), 1u);
  EXPECT_EQ(progress.exchange_failures(), 1u);
  ASSERT_EQ(progress.absent_servers_size(), 2);
  EXPECT_EQ(progress.absent_servers(1).address(), "b:2");
  EXPECT_EQ(progress.absent_servers(1).since_unix_ms(), 1001000);
  meter.SetAbsent("b:2", std::nullopt);
  meter.SetAbsent("c:3", std::nullopt);
  EXPECT_EQ(meter.Snapshot(absl::FromUnixSeconds(1003)).absent_servers_size(), 1);
}

// An evaluation between two steps does not change the rate, neither while it runs nor after it. The time that is left
// is estimated from that rate.
TEST(ProgressMeterTest, RateIsOfTrainingNotOfEvaluating) {
  absl::Time now = absl::FromUnixSeconds(1000);
  ProgressMeter meter(now);
  const auto step = [&](uint64_t number) {
    meter.Enter(v1::RankProgress::COMPUTE, now);
    now += absl::Milliseconds(100);
    meter.ReportStep({.step = number, .epoch = 1, .loss = 2, .samples = 10}, now);
  };
  for (uint64_t i = 1; i <= 20; ++i) step(i);
  meter.Enter(v1::RankProgress::EVALUATING, now);
  now += absl::Seconds(30);
  EXPECT_NEAR(meter.Snapshot(now).samples_per_s(), 100, 1e-6);
  for (uint64_t i = 21; i <= 23; ++i) step(i);
  EXPECT_NEAR(meter.Snapshot(now).samples_per_s(), 100, 1e-6);
}

}  // namespace
}  // namespace hooke
