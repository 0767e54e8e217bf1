#include "server/service/service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clocks/instant.h"
#include "job/job_refusal.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/journal/job_log.h"
#include "server/journal/profile_store.h"
#include "server/records/sqlite_record_store.h"
#include "server/service/fake_dial_back.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// The longest time that a call of these tests waits.
constexpr absl::Duration kDeadline = absl::Seconds(20);

// A coordinator behind a loopback port, with SQLite, that can be stopped and started again.
class Cluster {
 public:
  explicit Cluster(const std::string& folder) : folder_(folder) { Start(); }
  ~Cluster() { Stop(); }

  void Start() {
    std::filesystem::create_directories(folder_);
    CoordinatorOptions options;
    options.store = *OpenSqliteRecordStore(folder_ + "/coordinator.db");
    options.log = std::make_shared<JobLog>(*JobLog::Open({folder_ + "/logs"}));
    options.profiles = std::make_shared<ProfileStore>(*ProfileStore::Open({folder_ + "/profiles"}));
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    CoordinatorServiceOptions service;
    service.coordinator = *Coordinator::Create(std::move(options), InstantNow());
    service.tick = absl::Milliseconds(20);
    service.dial_back = std::make_shared<FakeDialBack>();
    service.log_sign_of_life = absl::Milliseconds(1);
    service_ = std::make_unique<CoordinatorService>(std::move(service));
    grpc::ServerBuilder builder;
    service_->AddTo(builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    server_ = builder.BuildAndStart();
    service_->Serve();
    stub = v1::Coordinator::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
    v1::ServerHeartbeatResponse response;
    EXPECT_TRUE(stub->ServerHeartbeat(Context().get(), FakeServer("s:1"), &response).ok());
  }

  void Stop() {
    if (service_ == nullptr) return;
    service_->Stop();
    server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
    service_->Join();
    server_.reset();
    service_.reset();
  }

  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    return context;
  }

  std::string Submit(const std::string& submission_id) {
    v1::SubmitResponse response;
    const grpc::Status status = stub->Submit(Context().get(), ExampleSubmission(submission_id, {1, 2}), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job_id();
  }

  std::unique_ptr<v1::Coordinator::Stub> stub;

 private:
  const std::string folder_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<grpc::Server> server_;
};

// The worker's side of a session.
class WorkerStream {
 public:
  WorkerStream(Cluster& cluster, const std::string& instance, const std::vector<v1::GroupId>& running = {})
      : context_(Cluster::Context()), stream_(cluster.stub->WorkerSession(context_.get())) {
    v1::WorkerMessage message;
    v1::WorkerHello* hello = message.mutable_hello();
    hello->set_name("w1");
    hello->set_instance(instance);
    hello->set_site("hpc");
    hello->set_slots(2);
    for (const v1::GroupId& id : running) *hello->add_running() = id;
    stream_->Write(message);
  }
  ~WorkerStream() {
    context_->TryCancel();
    if (!finished_) (void)stream_->Finish();
  }

  // Returns the next command that is no EventsSeen; an empty one if the stream has ended.
  v1::WorkerCommand Next() {
    v1::WorkerCommand command;
    while (stream_->Read(&command)) {
      if (!command.has_seen()) return command;
    }
    return {};
  }

  void Send(const v1::GroupId& id, uint64_t number, const std::function<void(v1::GroupEvent&)>& fill) {
    v1::WorkerMessage message;
    *message.mutable_event()->mutable_group() = id;
    message.mutable_event()->set_number(number);
    fill(*message.mutable_event());
    EXPECT_TRUE(stream_->Write(message));
  }

  void SendLog(const v1::GroupId& id, const std::string& line) {
    v1::WorkerMessage message;
    *message.mutable_log()->mutable_group() = id;
    message.mutable_log()->add_lines(line);
    EXPECT_TRUE(stream_->Write(message));
  }

  void SendHeartbeat(int64_t sent_ns) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_sent_ns(sent_ns);
    EXPECT_TRUE(stream_->Write(message));
  }

  // Waits until the coordinator acknowledges the event with this number.
  void AwaitSeen(uint64_t number) {
    v1::WorkerCommand command;
    while (stream_->Read(&command)) {
      if (command.seen().number() >= number) return;
    }
    ADD_FAILURE() << "the stream ended before event " << number << " was seen";
  }

  grpc::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }

 private:
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::WorkerCommand>> stream_;
  bool finished_ = false;
};

struct Profiles {
  std::vector<v1::ReadProfileResponse> ranks;
  grpc::Status status;
};
Profiles ReadProfiles(Cluster& cluster, const std::string& job_id, bool trace) {
  auto context = Cluster::Context();
  v1::ReadProfileRequest request;
  request.set_job_id(job_id);
  request.set_trace(trace);
  auto reader = cluster.stub->ReadProfile(context.get(), request);
  Profiles profiles;
  v1::ReadProfileResponse response;
  while (reader->Read(&response)) profiles.ranks.push_back(response);
  profiles.status = reader->Finish();
  return profiles;
}

v1::GroupId IdOf(const v1::WorkerCommand& start) {
  v1::GroupId id;
  id.set_job_id(start.start().group().job_id());
  id.set_group(start.start().group().group());
  id.set_incarnation(start.start().group().incarnation());
  return id;
}

void Ok(v1::GroupEvent& event) { event.mutable_ended()->set_ok(true); }

class ServiceTest : public testing::Test {
 protected:
  ServiceTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
  }
  ~ServiceTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_;
};

// A whole job runs over gRPC. A client submits it, and its group is started on the worker's stream. A watcher sees its
// events until it ends, and a reader follows its log.
TEST_F(ServiceTest, CarriesAJobFromSubmitToSuccess) {
  Cluster cluster(folder_);
  const std::string id = cluster.Submit("s");
  std::vector<v1::JobState> states;
  double accuracy = 0;
  std::thread watcher([&] {
    auto context = Cluster::Context();
    v1::WatchJobRequest request;
    request.set_job_id(id);
    auto reader = cluster.stub->WatchJob(context.get(), request);
    v1::JobStatus status;
    while (reader->Read(&status)) {
      if (states.empty() || states.back() != status.state()) states.push_back(status.state());
      accuracy = status.center().accuracy();
    }
    EXPECT_TRUE(reader->Finish().ok());
  });
  std::string log;
  std::thread follower([&] {
    auto context = Cluster::Context();
    v1::ReadLogRequest request;
    request.set_job_id(id);
    request.set_follow(true);
    auto reader = cluster.stub->ReadLog(context.get(), request);
    v1::LogChunk chunk;
    while (reader->Read(&chunk)) log += chunk.text();
    EXPECT_TRUE(reader->Finish().ok());
  });

  WorkerStream worker(cluster, "i1");
  EXPECT_TRUE(worker.Next().has_welcome());
  const v1::GroupId group = IdOf(worker.Next());
  EXPECT_EQ(group.job_id(), id);
  worker.Send(group, 1, [](v1::GroupEvent& event) {
    v1::RankProgress* progress = event.mutable_report()->mutable_event()->mutable_progress();
    progress->set_step(3);
    progress->set_phase(v1::RankProgress::COMPUTE);
  });
  worker.SendLog(group, "group-0/rank-0 hello from a rank");
  worker.Send(group, 2, Ok);
  const v1::GroupId evaluation = IdOf(worker.Next());
  EXPECT_EQ(evaluation.group(), 1u);
  worker.Send(evaluation, 1, [](v1::GroupEvent& event) {
    event.mutable_report()->mutable_event()->mutable_evaluated()->set_accuracy(0.91);
  });
  worker.Send(evaluation, 2, Ok);
  watcher.join();
  follower.join();
  EXPECT_EQ(states.back(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(accuracy, 0.91);
  EXPECT_THAT(log, HasSubstr(" group-0/rank-0 hello from a rank\n"));
  EXPECT_THAT(log, HasSubstr("coordinator job succeeded"));
}

// A job prints nothing, because no worker can run it. The client that follows its log still gets an empty chunk now and
// then. Such a chunk has the same next offset.
TEST_F(ServiceTest, ASilentLogShowsSignsOfLife) {
  Cluster cluster(folder_);
  v1::ReadLogRequest request;
  request.set_job_id(cluster.Submit("s"));
  request.set_follow(true);
  auto context = Cluster::Context();
  auto reader = cluster.stub->ReadLog(context.get(), request);
  v1::LogChunk chunk;
  uint64_t offset = 0;
  for (int signs = 0; signs < 3;) {
    ASSERT_TRUE(reader->Read(&chunk));
    if (!chunk.text().empty()) {
      offset = chunk.next_offset();
      continue;
    }
    EXPECT_EQ(chunk.next_offset(), offset);
    ++signs;
  }
  context->TryCancel();
  reader->Finish();
}

// Whatever Submit has acknowledged is there after the coordinator was started again, and the worker's group goes on.
TEST_F(ServiceTest, ARestartKeepsJobsAndGroups) {
  Cluster cluster(folder_);
  const std::string id = cluster.Submit("s");
  const std::string queued = cluster.Submit("t");
  v1::GroupId group;
  {
    WorkerStream worker(cluster, "i1");
    worker.Next();
    group = IdOf(worker.Next());
    EXPECT_EQ(group.job_id(), id);
    cluster.Stop();
    EXPECT_FALSE(worker.Next().has_start());
  }
  cluster.Start();
  EXPECT_EQ(cluster.Submit("s"), id);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(cluster.stub->ListJobs(Cluster::Context().get(), {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 2);
  EXPECT_EQ(jobs.jobs(0).job_id(), queued);
  EXPECT_EQ(jobs.jobs(1).state(), v1::JOB_STATE_RUNNING);

  WorkerStream worker(cluster, "i1", {group});
  EXPECT_TRUE(worker.Next().has_welcome());
  worker.Send(group, 1, Ok);
  const v1::WorkerCommand next = worker.Next();
  EXPECT_EQ(next.start().group().job_id(), id);
  EXPECT_EQ(next.start().group().task(), v1::GroupStart::EVALUATE);
}

// If the list of jobs is longer than a message may be, it has the newest jobs and the number of those left out.
TEST_F(ServiceTest, SaysHowManyJobsAListLeavesOut) {
  Cluster cluster(folder_);
  constexpr int kJobs = 120;
  for (int i = 0; i < kJobs; ++i) {
    v1::SubmitResponse response;
    const v1::SubmitRequest request = ExampleSubmission(absl::StrCat("s", i), {1024, 1});
    ASSERT_TRUE(cluster.stub->Submit(Cluster::Context().get(), request, &response).ok());
  }
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(cluster.stub->ListJobs(Cluster::Context().get(), {}, &jobs).ok());
  ASSERT_GT(jobs.jobs_size(), 0);
  EXPECT_GT(jobs.left_out(), 0u);
  EXPECT_EQ(jobs.jobs_size() + jobs.left_out(), kJobs);
  EXPECT_EQ(jobs.jobs(0).job_id(), absl::StrCat("fashion-", kJobs));
}

// Cancelling reaches the worker's stream. The group's slots stay in use until the worker reports its end.
TEST_F(ServiceTest, CancelStopsTheGroup) {
  Cluster cluster(folder_);
  const std::string id = cluster.Submit("s");
  WorkerStream worker(cluster, "i1");
  worker.Next();
  const v1::GroupId group = IdOf(worker.Next());
  v1::CancelJobRequest request;
  request.set_job_id(id);
  v1::CancelJobResponse response;
  ASSERT_TRUE(cluster.stub->CancelJob(Cluster::Context().get(), request, &response).ok());
  EXPECT_EQ(response.job().state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(worker.Next().stop().group().incarnation(), group.incarnation());
  v1::ListNodesResponse nodes;
  ASSERT_TRUE(cluster.stub->ListNodes(Cluster::Context().get(), {}, &nodes).ok());
  ASSERT_EQ(nodes.nodes_size(), 2);
  EXPECT_EQ(nodes.nodes(0).name(), "s:1");
  EXPECT_EQ(nodes.nodes(1).name(), "w1");
  EXPECT_EQ(nodes.nodes(1).slots_used(), 2u);
}

// A second daemon with the same name, a session without hello, and calls for unknown jobs are refused. Each gets its
// own code and message.
TEST_F(ServiceTest, RefusesWhatIsWrong) {
  Cluster cluster(folder_);
  WorkerStream first(cluster, "i1");
  EXPECT_TRUE(first.Next().has_welcome());
  WorkerStream second(cluster, "i2");
  EXPECT_FALSE(second.Next().has_welcome());
  const grpc::Status refused = second.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(refused.error_message(), HasSubstr("a worker named w1 is connected already"));

  auto context = Cluster::Context();
  auto stream = cluster.stub->WorkerSession(context.get());
  v1::WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat();
  stream->Write(heartbeat);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  context = Cluster::Context();
  v1::WatchJobRequest watch;
  watch.set_job_id("none-1");
  v1::JobStatus status;
  auto reader = cluster.stub->WatchJob(context.get(), watch);
  EXPECT_FALSE(reader->Read(&status));
  const grpc::Status unknown = reader->Finish();
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(unknown.error_message(), "no job none-1: `hooke jobs` lists them");

  v1::SubmitRequest submission = ExampleSubmission("s");
  submission.mutable_job()->mutable_train()->set_epochs(100001);
  v1::SubmitResponse response;
  const grpc::Status invalid = cluster.stub->Submit(Cluster::Context().get(), submission, &response);
  EXPECT_EQ(invalid.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(invalid.error_message(), "train.epochs: 100001 is out of range; must be an integer from 1 to 100000");
  const Refusal refusal = ReadRefusal(FromGrpc(invalid));
  ASSERT_EQ(refusal.problems.size(), 1u);
  EXPECT_EQ(refusal.problems[0].key, "train.epochs");
  EXPECT_EQ(refusal.problems[0].message, "100001 is out of range; must be an integer from 1 to 100000");
}

// However often a job changes, a client that watches it gets its state at most five times a second.
TEST_F(ServiceTest, WatchesInModeration) {
  Cluster cluster(folder_);
  const std::string id = cluster.Submit("s");
  WorkerStream worker(cluster, "i1");
  EXPECT_TRUE(worker.Next().has_welcome());
  const v1::GroupId group = IdOf(worker.Next());
  std::atomic<bool> enough = false;
  std::thread changes([&] {
    for (uint64_t number = 1; !enough; ++number) {
      worker.Send(group, number, [number](v1::GroupEvent& event) {
        event.mutable_report()->mutable_event()->mutable_progress()->set_step(number);
      });
      worker.AwaitSeen(number);
    }
  });
  v1::WatchJobRequest request;
  request.set_job_id(id);
  const std::unique_ptr<grpc::ClientContext> context = Cluster::Context();
  const auto reader = cluster.stub->WatchJob(context.get(), request);
  v1::JobStatus status;
  const absl::Time before = absl::Now();
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(reader->Read(&status));
  // The first state comes at once, and each of the other five after a pause.
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(900));
  enough = true;
  changes.join();
  context->TryCancel();
  (void)reader->Finish();
}

// Stopping ends open watches with UNAVAILABLE at once, so that a client knows to come again.
TEST_F(ServiceTest, StoppingEndsWatches) {
  Cluster cluster(folder_);
  auto context = Cluster::Context();
  v1::WatchJobRequest request;
  request.set_job_id(cluster.Submit("s"));
  auto reader = cluster.stub->WatchJob(context.get(), request);
  v1::JobStatus status;
  ASSERT_TRUE(reader->Read(&status));
  const absl::Time before = absl::Now();
  cluster.Stop();
  while (reader->Read(&status)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_LT(absl::Now() - before, absl::Seconds(5));
}

// The last profile of each rank is kept while the job runs, also over a restart of the coordinator. It comes with the
// trace if the reader asks for that. A profile that is out of bounds changes nothing.
TEST_F(ServiceTest, KeepsProfiles) {
  Cluster cluster(folder_);
  const std::string id = cluster.Submit("s");
  EXPECT_EQ(ReadProfiles(cluster, "nope-1", false).status.error_code(), grpc::NOT_FOUND);
  const grpc::Status none = ReadProfiles(cluster, id, false).status;
  EXPECT_EQ(none.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(none.error_message(), HasSubstr("has no profile yet"));
  WorkerStream worker(cluster, "i1");
  EXPECT_TRUE(worker.Next().has_welcome());
  const v1::GroupId group = IdOf(worker.Next());
  uint64_t number = 0;
  const auto send = [&](uint32_t rank, uint64_t step_ns, int64_t error_ns) {
    worker.Send(group, ++number, [&](v1::GroupEvent& event) {
      event.mutable_report()->set_rank(rank);
      v1::RankProfile* profile = event.mutable_report()->mutable_event()->mutable_profile();
      profile->set_step_ns(step_ns);
      profile->mutable_clock()->set_error_ns(error_ns);
      profile->add_events()->set_phase(v1::RankProgress::COMPUTE);
    });
  };
  send(1, 10, 0);
  send(0, 20, 0);
  send(0, 30, 0);
  send(0, 40, -1);
  send(7, 50, 0);
  worker.AwaitSeen(number);
  // Profiles are acknowledged before they are written, so the test has to wait for them.
  const auto are_written = [&] {
    const Profiles kept = ReadProfiles(cluster, id, false);
    return kept.ranks.size() == 2 && kept.ranks[0].profile().step_ns() == 30;
  };
  const absl::Time limit = absl::Now() + kDeadline;
  while (!are_written() && absl::Now() < limit) {
  }
  for (int i = 0; i < 2; ++i) {
    const Profiles traced = ReadProfiles(cluster, id, true);
    ASSERT_TRUE(traced.status.ok()) << traced.status.error_message();
    ASSERT_EQ(traced.ranks.size(), 2u);
    EXPECT_EQ(traced.ranks[0].rank(), 0u);
    EXPECT_EQ(traced.ranks[0].profile().step_ns(), 30u);
    EXPECT_EQ(traced.ranks[0].profile().events_size(), 1);
    EXPECT_EQ(traced.ranks[1].profile().step_ns(), 10u);
    EXPECT_EQ(ReadProfiles(cluster, id, false).ranks.at(0).profile().events_size(), 0);
    cluster.Stop();
    cluster.Start();
  }
}

// A heartbeat that carries a time is answered with that time and the coordinator's own.
TEST_F(ServiceTest, EchoesTheClock) {
  Cluster cluster(folder_);
  WorkerStream worker(cluster, "i1");
  EXPECT_TRUE(worker.Next().has_welcome());
  const int64_t before = absl::GetCurrentTimeNanos();
  worker.SendHeartbeat(77);
  const v1::ClockEcho echo = worker.Next().clock();
  EXPECT_EQ(echo.sent_ns(), 77);
  EXPECT_GE(echo.unix_ns(), before);
  EXPECT_LE(echo.unix_ns(), absl::GetCurrentTimeNanos());
}

}  // namespace
}  // namespace hooke
