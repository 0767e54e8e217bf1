#include "server/heartbeat/heartbeat.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/parameters/group_reached.h"
#include "server/parameters/parameter_server.h"

namespace hooke {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr absl::Duration kDeadline = absl::Seconds(20);

// Holds two jobs; sealing "ended-1" fails a few times, then works.
class FakeParameters : public ParameterServer {
 public:
  explicit FakeParameters(int failures = 1) : failures_(failures) {}
  grpc::Service* service() override { return nullptr; }
  void LoadInBackground() override {}
  absl::Status Seal(absl::string_view job_id) override {
    absl::MutexLock lock(&mutex_);
    if (++seals_ <= failures_) return absl::UnavailableError("broken disk");
    jobs_.erase(std::string(job_id));
    return absl::OkStatus();
  }
  // Called once for each heartbeat.
  ParameterServerStats Stats() const override {
    absl::MutexLock lock(&mutex_);
    ++tries_;
    ParameterServerStats stats = {123, {jobs_.begin(), jobs_.end()}, 2, 456, {}};
    for (const std::string& job_id : disk_jobs_) stats.disk_jobs.emplace_back(job_id, 7);
    return stats;
  }
  absl::Status Forget(const std::string& job_id, const std::string& job_key) override {
    absl::MutexLock lock(&mutex_);
    forgets_.push_back(absl::StrCat(job_id, " ", job_key));
    if (job_key != "key") return absl::FailedPreconditionError("it is another job's");
    disk_jobs_.erase(job_id);
    return absl::OkStatus();
  }
  // The first two calls fail. In the answer, group 1 has made no exchange.
  absl::StatusOr<std::vector<GroupReached>> EndGeneration(const std::string& job_id, const std::string& job_key,
                                                          uint32_t successor) override {
    absl::MutexLock lock(&mutex_);
    ends_.push_back(absl::StrCat(job_id, " ", job_key, " ", successor));
    if (ends_.size() <= 2) return absl::UnavailableError("broken disk");
    return std::vector<GroupReached>{{4, 70}, {0, 40}};
  }
  std::vector<std::string> ends() const {
    absl::MutexLock lock(&mutex_);
    return ends_;
  }
  std::vector<std::string> forgets() const {
    absl::MutexLock lock(&mutex_);
    return forgets_;
  }
  void MeasureClock(const ClockRoundTrip& trip) override {
    absl::MutexLock lock(&mutex_);
    trips_.push_back(trip);
  }
  std::vector<ClockRoundTrip> trips() const {
    absl::MutexLock lock(&mutex_);
    return trips_;
  }
  ParameterFigures Figures() const override { return {}; }
  absl::Status Stop() override { return absl::OkStatus(); }
  int seals() const {
    absl::MutexLock lock(&mutex_);
    return seals_;
  }
  // Waits until Seal was called `seals` times. False: it took too long.
  bool WaitForSeals(int seals) {
    absl::MutexLock lock(&mutex_);
    const auto made = [this, seals]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return seals_ >= seals; };
    return mutex_.AwaitWithTimeout(absl::Condition(&made), kDeadline);
  }
  bool WaitForMoreTries(int tries) {
    absl::MutexLock lock(&mutex_);
    const int enough = tries_ + tries;
    const auto made = [this, enough]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return tries_ >= enough; };
    return mutex_.AwaitWithTimeout(absl::Condition(&made), kDeadline);
  }

 private:
  const int failures_;
  mutable absl::Mutex mutex_;
  mutable int tries_ ABSL_GUARDED_BY(mutex_) = 0;
  int seals_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> jobs_ ABSL_GUARDED_BY(mutex_) = {"ended-1", "running-2"};
  std::set<std::string> disk_jobs_ ABSL_GUARDED_BY(mutex_) = {"old-3", "old-4", "old-5"};
  std::vector<std::string> forgets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> ends_ ABSL_GUARDED_BY(mutex_);
  std::vector<ClockRoundTrip> trips_ ABSL_GUARDED_BY(mutex_);
};

// A coordinator that answers that ended-1 has ended. It notices when the server does not hold that job any more.
class FakeCoordinator : public v1::Coordinator::Service {
 public:
  grpc::Status ServerHeartbeat(grpc::ServerContext*, const v1::ServerHeartbeatRequest* request,
                               v1::ServerHeartbeatResponse* response) override {
    absl::MutexLock lock(&mutex_);
    last_ = *request;
    ++beats_;
    if (refuses) return {grpc::StatusCode::UNAUTHENTICATED, "no such token"};
    response->add_ended_jobs("ended-1");
    // The second answer is that of an older coordinator, without its time.
    if (beats_ != 2) response->set_now_unix_ns(1700000000000000000);
    // The first two answers have the same problem, which the server must log once.
    if (beats_ <= 2) response->set_problem("advertises me:1, which is wrong");
    if (request->jobs_size() == 1 && !sealed.HasBeenNotified()) sealed.Notify();
    if (request->lists_disk_jobs()) {
      lists_.emplace_back();
      for (const v1::DiskJob& job : request->disk_jobs()) lists_.back().push_back(job.job_id());
    }
    if (ends_generation && request->closed_size() == 0 && closed_.empty()) {
      v1::GenerationEnd* end = response->add_closing();
      end->set_job_id("running-2");
      end->set_job_key("key");
      end->set_incarnation(5);
    }
    for (const v1::ClosedGeneration& closed : request->closed()) {
      closed_.push_back(closed);
      if (!answered.HasBeenNotified()) answered.Notify();
    }
    for (const auto& [job_id, key] : forgotten) {
      v1::ForgottenJob* job = response->add_forgotten_jobs();
      job->set_job_id(job_id);
      job->set_job_key(key);
    }
    return grpc::Status::OK;
  }

  v1::ServerHeartbeatRequest last() {
    absl::MutexLock lock(&mutex_);
    return last_;
  }

  // Waits for `beats` more heartbeats. False: it took too long.
  bool WaitForMoreBeats(int beats) {
    absl::MutexLock lock(&mutex_);
    const int enough = beats_ + beats;
    const auto come = [this, enough]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return beats_ >= enough; };
    return mutex_.AwaitWithTimeout(absl::Condition(&come), kDeadline);
  }

  // Waits for a list without `job_id`. False: it took too long.
  bool WaitForListWithout(const std::string& job_id) {
    absl::MutexLock lock(&mutex_);
    const auto come = [this, &job_id]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !lists_.empty() && std::count(lists_.back().begin(), lists_.back().end(), job_id) == 0;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&come), kDeadline);
  }
  std::vector<std::vector<std::string>> lists() {
    absl::MutexLock lock(&mutex_);
    return lists_;
  }

  std::vector<v1::ClosedGeneration> closed() {
    absl::MutexLock lock(&mutex_);
    return closed_;
  }

  // Every heartbeat is refused with UNAUTHENTICATED. Tests set it before the first heartbeat.
  bool refuses = false;
  bool ends_generation =
      // Answers tell the server to end a generation, until it reports how far the groups came. Tests set it before the
      // first heartbeat.
      false;
  absl::Notification answered;
  absl::Notification sealed;
  std::map<std::string, std::string>
      // The jobs that each answer tells the server to free, with their keys. Tests set it before the first heartbeat.
      forgotten;

 private:
  absl::Mutex mutex_;
  std::vector<std::vector<std::string>> lists_ ABSL_GUARDED_BY(mutex_);
  v1::ServerHeartbeatRequest last_ ABSL_GUARDED_BY(mutex_);
  int beats_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::ClosedGeneration> closed_ ABSL_GUARDED_BY(mutex_);
};

// A server's heartbeats to a coordinator that answers.
class HeartbeatTest : public testing::Test {
 protected:
  HeartbeatTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&coordinator_);
    server_ = builder.BuildAndStart();
  }
  ~HeartbeatTest() override { server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1))); }

  HeartbeatOptions Options(FakeParameters& parameters) {
    HeartbeatOptions options;
    options.address = "me:1";
    options.coordinator = absl::StrCat("127.0.0.1:", port_);
    options.channel = grpc::CreateChannel(options.coordinator, grpc::InsecureChannelCredentials());
    options.parameters = &parameters;
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
    return options;
  }

  FakeCoordinator coordinator_;
  std::ostringstream log_;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// A heartbeat has the server's identity and the jobs that it holds. The server seals the jobs that have ended, and
// tries again if that fails.
TEST_F(HeartbeatTest, TellsAndSeals) {
  FakeParameters parameters;
  HeartbeatOptions options = Options(parameters);
  options.server_id = "my identity";
  options.instance = "my process";
  options.version = "1.2.3";
  options.interval = absl::Milliseconds(10);
  options.seal_again_after = absl::Milliseconds(10);
  {
    auto heartbeat = std::make_unique<Heartbeat>(options);
    EXPECT_TRUE(coordinator_.sealed.WaitForNotificationWithTimeout(kDeadline));
  }
  EXPECT_EQ(coordinator_.last().address(), "me:1");
  EXPECT_EQ(coordinator_.last().server_id(), "my identity");
  EXPECT_EQ(coordinator_.last().instance(), "my process");
  EXPECT_EQ(coordinator_.last().version(), "1.2.3");
  EXPECT_EQ(coordinator_.last().center_bytes(), 123u);
  EXPECT_EQ(coordinator_.last().disk_centers(), 2u);
  EXPECT_EQ(coordinator_.last().disk_bytes(), 456u);
  EXPECT_GE(coordinator_.last().cores(), 0);
  ASSERT_FALSE(parameters.trips().empty());
  for (const ClockRoundTrip& trip : parameters.trips()) {
    EXPECT_GT(trip.sent, 0);
    EXPECT_EQ(trip.answered, 1700000000000000000);  // An answer without a time gives no round trip.
    EXPECT_GE(trip.received, trip.sent);
  }
  EXPECT_THAT(log_.str(), HasSubstr("joined the coordinator at 127.0.0.1"));
  const std::string problem = "the coordinator places nothing on this server, which advertises me:1, which is wrong";
  EXPECT_THAT(log_.str(), HasSubstr(problem));
  EXPECT_EQ(log_.str().find(problem), log_.str().rfind(problem));
  EXPECT_THAT(log_.str(), HasSubstr("the center of job ended-1 could not be written, trying again"));
  EXPECT_THAT(log_.str(), HasSubstr("job ended-1 has ended: its center is on disk"));
}

// The coordinator gets the list of jobs on disk with the first heartbeat, and then only when it has changed. The server
// frees a job that the coordinator calls forgotten. If the job has another key, the server refuses to free it, and that
// is tried only once.
TEST_F(HeartbeatTest, FreesWhatIsForgotten) {
  coordinator_.forgotten = {{"old-3", "key"}, {"old-4", "another key"}};
  FakeParameters parameters(0);
  HeartbeatOptions options = Options(parameters);
  options.interval = absl::Milliseconds(1);
  options.disk_jobs_every = 1000000;
  {
    auto heartbeat = std::make_unique<Heartbeat>(options);
    EXPECT_TRUE(coordinator_.WaitForListWithout("old-3"));
    EXPECT_TRUE(coordinator_.WaitForMoreBeats(100));
  }
  EXPECT_THAT(coordinator_.lists(), ElementsAre(ElementsAre("old-3", "old-4", "old-5"), ElementsAre("old-4", "old-5")));
  const std::vector<std::string> forgets = parameters.forgets();
  EXPECT_EQ(std::count(forgets.begin(), forgets.end(), "old-4 another key"), 1);
  EXPECT_THAT(log_.str(), HasSubstr("job old-3 was forgotten: its shard here is freed"));
  EXPECT_THAT(log_.str(), HasSubstr("job old-4 was forgotten, but it is another job's"));
}

// The server ends a generation that the coordinator names, and says once how far the groups had come. After a failure
// it tries again at the next heartbeat, and logs the failure once.
TEST_F(HeartbeatTest, EndsGenerations) {
  coordinator_.ends_generation = true;
  FakeParameters parameters(0);
  HeartbeatOptions options = Options(parameters);
  options.interval = absl::Milliseconds(10);
  {
    auto heartbeat = std::make_unique<Heartbeat>(options);
    EXPECT_TRUE(coordinator_.answered.WaitForNotificationWithTimeout(kDeadline));
    EXPECT_TRUE(coordinator_.WaitForMoreBeats(10));
  }
  EXPECT_THAT(parameters.ends(), Each("running-2 key 5"));
  EXPECT_THAT(parameters.ends(), SizeIs(3));
  const std::vector<v1::ClosedGeneration> closed = coordinator_.closed();
  ASSERT_THAT(closed, SizeIs(1)) << "the answer is not sent again";
  EXPECT_EQ(closed[0].job_id(), "running-2");
  EXPECT_EQ(closed[0].incarnation(), 5u);
  ASSERT_THAT(closed[0].groups(), SizeIs(2));
  EXPECT_EQ(closed[0].groups(0).group(), 0u);
  EXPECT_EQ(closed[0].groups(0).incarnation(), 4u);
  EXPECT_EQ(closed[0].groups(0).step(), 70u);
  EXPECT_EQ(closed[0].groups(1).group(), 1u);
  EXPECT_EQ(closed[0].groups(1).step(), 40u);
  const std::string text = log_.str();
  EXPECT_THAT(text, HasSubstr("this server cannot say how far they had come, trying again: broken disk"));
  EXPECT_EQ(text.find("cannot say"), text.rfind("cannot say"));
}

// Groups wait until the server has ended their generation. So the server reports that at once, not with its next
// regular heartbeat.
TEST_F(HeartbeatTest, AnswersAtOnce) {
  coordinator_.ends_generation = true;
  FakeParameters parameters(0);
  // FakeParameters lets the first two calls fail. So the heartbeat's own call succeeds.
  for (int i = 0; i < 2; ++i) (void)parameters.EndGeneration("", "", 0);
  HeartbeatOptions options = Options(parameters);
  options.interval = 3 * kDeadline;
  auto heartbeat = std::make_unique<Heartbeat>(options);
  EXPECT_TRUE(coordinator_.answered.WaitForNotificationWithTimeout(kDeadline));
}

// If a center cannot be written, the server tries and logs that once in a while, not at each heartbeat.
TEST_F(HeartbeatTest, TriesAFailedSealAgainOnceInAWhile) {
  FakeParameters parameters(1000000);
  HeartbeatOptions options = Options(parameters);
  options.interval = absl::Milliseconds(1);
  {
    auto heartbeat = std::make_unique<Heartbeat>(options);
    EXPECT_TRUE(parameters.WaitForSeals(1));
    EXPECT_TRUE(coordinator_.WaitForMoreBeats(100));
  }
  EXPECT_EQ(parameters.seals(), 1);
  const std::string text = log_.str();
  EXPECT_NE(text.find("could not be written"), std::string::npos);
  EXPECT_EQ(text.find("could not be written"), text.rfind("could not be written"));
}

// If the coordinator refuses the server's token, the server logs that once, however long it lasts.
TEST_F(HeartbeatTest, TellsOnceThatItsTokenIsRefused) {
  FakeParameters parameters;
  coordinator_.refuses = true;
  HeartbeatOptions options = Options(parameters);
  options.interval = absl::Milliseconds(1);
  options.complain_every = absl::ZeroDuration();
  {
    auto heartbeat = std::make_unique<Heartbeat>(options);
    EXPECT_TRUE(coordinator_.WaitForMoreBeats(20));
  }
  const std::string text = log_.str();
  EXPECT_THAT(text, HasSubstr("refuses this server: no such token"));
  EXPECT_EQ(text.find("refuses"), text.rfind("refuses"));
  EXPECT_EQ(text.find("does not answer"), std::string::npos);
}

// A log sink that notices when a line with a given text has come.
class WaitingSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  absl::Notification complained;
  int complaints = 0;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_.append(message.payload.data(), message.payload.size());
    if (text_.find("does not answer") != std::string::npos && ++complaints == 1) complained.Notify();
    text_.clear();
  }
  void flush_() override {}

 private:
  std::string text_;
};

HeartbeatOptions NobodyListens(FakeParameters& parameters, std::shared_ptr<spdlog::sinks::sink> sink) {
  HeartbeatOptions options;
  options.address = "me:1";
  options.coordinator = "127.0.0.1:1";  // Nobody listens on this reserved port.
  options.channel = grpc::CreateChannel(options.coordinator, grpc::InsecureChannelCredentials());
  options.parameters = &parameters;
  options.logger = std::make_shared<spdlog::logger>("test", std::move(sink));
  return options;
}

// If the coordinator is not there, the server logs that once in a while, not at each try.
TEST(AbsentCoordinatorTest, ComplainsOnceInAWhile) {
  FakeParameters parameters;
  auto sink = std::make_shared<WaitingSink>();
  HeartbeatOptions options = NobodyListens(parameters, sink);
  options.interval = absl::Milliseconds(1);
  options.complain_every = absl::Hours(1);
  auto heartbeat = std::make_unique<Heartbeat>(options);
  EXPECT_TRUE(sink->complained.WaitForNotificationWithTimeout(kDeadline));
  EXPECT_TRUE(parameters.WaitForMoreTries(20));
  heartbeat.reset();
  EXPECT_EQ(sink->complaints, 1);
}

// While the coordinator stays away, the server logs that again and again.
TEST(AbsentCoordinatorTest, ComplainsAgain) {
  FakeParameters parameters;
  auto sink = std::make_shared<WaitingSink>();
  HeartbeatOptions options = NobodyListens(parameters, sink);
  options.interval = absl::Milliseconds(1);
  options.complain_every = absl::ZeroDuration();
  auto heartbeat = std::make_unique<Heartbeat>(options);
  EXPECT_TRUE(parameters.WaitForMoreTries(5));
  heartbeat.reset();
  EXPECT_GE(sink->complaints, 4);
}

// A Heartbeat can be destroyed in the middle of the pause between two heartbeats.
TEST(AbsentCoordinatorTest, EndsInAPause) {
  FakeParameters parameters;
  auto sink = std::make_shared<WaitingSink>();
  HeartbeatOptions options = NobodyListens(parameters, sink);
  options.interval = 3 * kDeadline;
  auto heartbeat = std::make_unique<Heartbeat>(options);
  EXPECT_TRUE(sink->complained.WaitForNotificationWithTimeout(kDeadline));
  const absl::Time before = absl::Now();
  heartbeat.reset();
  EXPECT_LT(absl::Now() - before, kDeadline);
}

}  // namespace
}  // namespace hooke
