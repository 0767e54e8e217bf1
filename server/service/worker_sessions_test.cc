#include "server/service/worker_sessions.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clocks/instant.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/journal/job_log.h"
#include "server/records/record_store.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// The longest time that a call of these tests waits.
constexpr absl::Duration kDeadline = absl::Seconds(20);

v1::WorkerMessage Hello(const std::string& name, int running = 0) {
  v1::WorkerMessage message;
  v1::WorkerHello* hello = message.mutable_hello();
  hello->set_name(name);
  hello->set_instance("i");
  hello->set_site("hpc");
  hello->set_slots(4096);
  for (int i = 0; i < running; ++i) {
    v1::GroupId* group = hello->add_running();
    group->set_job_id("unknown-1");
    group->set_group(static_cast<uint32_t>(i));
    group->set_incarnation(1);
  }
  return message;
}

v1::WorkerMessage Heartbeat(int64_t sent_ns) {
  v1::WorkerMessage message;
  message.mutable_heartbeat()->set_sent_ns(sent_ns);
  return message;
}

// The worker's side of a session, on a connection of its own.
class Worker {
 public:
  Worker(int port, const v1::WorkerMessage& first) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // Otherwise gRPC measures the connection, and takes megabytes ahead of the reader instead of 64 KiB.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = v1::Coordinator::NewStub(
        grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    stream_ = stub_->WorkerSession(&context_);
    if (!stream_->Write(first)) ADD_FAILURE() << Finish().error_message();
  }
  ~Worker() {
    context_.TryCancel();
    if (!finished_) (void)stream_->Finish();
  }

  bool Send(const v1::WorkerMessage& message) { return stream_->Write(message); }
  // Returns the next command; an empty one if the stream has ended.
  v1::WorkerCommand Next() {
    v1::WorkerCommand command;
    return stream_->Read(&command) ? command : v1::WorkerCommand();
  }
  void SendsNoMore() { stream_->WritesDone(); }
  grpc::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }

 private:
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::WorkerCommand>> stream_;
  bool finished_ = false;
};

class WorkerSessionsTest : public testing::Test {
 protected:
  WorkerSessionsTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    CoordinatorOptions options;
    options.store = std::make_shared<InMemoryRecordStore>();
    options.log = std::make_shared<JobLog>(*JobLog::Open({folder_}));
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    coordinator_ = *Coordinator::Create(std::move(options), InstantNow());
    sessions_ = std::make_unique<WorkerSessions>(*coordinator_, InstantNow);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    sessions_->AddTo(builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    server_ = builder.BuildAndStart();
    sessions_->Serve(service_);
  }
  ~WorkerSessionsTest() override {
    Stop();
    std::filesystem::remove_all(folder_);
  }

  void Stop() {
    coordinator_->Stop();
    if (server_ == nullptr) return;
    server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
    sessions_->Join();
    server_.reset();
    sessions_.reset();
  }

  const std::string folder_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<WorkerSessions> sessions_;
  WorkerSessions::Service service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// Many workers at once: each gets its own welcome and the echoes of its own heartbeats.
TEST_F(WorkerSessionsTest, ServesManyWorkers) {
  constexpr int kWorkers = 20;
  constexpr int kEchoes = 50;
  std::vector<std::thread> threads;
  threads.reserve(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([this, i] {
      Worker worker(port_, Hello(absl::StrCat("w", i)));
      EXPECT_TRUE(worker.Next().has_welcome());
      for (int64_t echo = 1; echo <= kEchoes; ++echo) {
        ASSERT_TRUE(worker.Send(Heartbeat(int64_t{1000} * i + echo)));
        EXPECT_EQ(worker.Next().clock().sent_ns(), int64_t{1000} * i + echo);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A worker comes back with groups of a job that the coordinator does not know. It gets its welcome and all stops at
// once, before it has sent anything more.
TEST_F(WorkerSessionsTest, WelcomesAWorkerWithGroupsToStop) {
  constexpr int kGroups = 3;
  Worker worker(port_, Hello("w1", kGroups));
  EXPECT_TRUE(worker.Next().has_welcome());
  for (int i = 0; i < kGroups; ++i) EXPECT_EQ(worker.Next().stop().group().job_id(), "unknown-1");
  ASSERT_TRUE(worker.Send(Heartbeat(7)));
  EXPECT_EQ(worker.Next().clock().sent_ns(), 7);
}

// When another thread stops the coordinator, the worker's stream ends at once.
TEST_F(WorkerSessionsTest, StopEndsSessionsAtOnce) {
  Worker worker(port_, Hello("w1"));
  EXPECT_TRUE(worker.Next().has_welcome());
  coordinator_->Stop();
  EXPECT_FALSE(worker.Next().has_welcome());
  EXPECT_EQ(worker.Finish().error_code(), grpc::StatusCode::CANCELLED);
  Worker late(port_, Hello("w2"));
  EXPECT_EQ(late.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// The server is shut down while one stream has not said hello and another one sends nothing. The shutdown takes a
// bounded time.
TEST_F(WorkerSessionsTest, ShutdownIsBounded) {
  Worker worker(port_, Hello("w1"));
  EXPECT_TRUE(worker.Next().has_welcome());
  grpc::ClientContext context;
  const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials());
  const auto silent = v1::Coordinator::NewStub(channel)->WorkerSession(&context);
  const absl::Time before = absl::Now();
  Stop();
  EXPECT_LT(absl::Now() - before, absl::Seconds(10));
  EXPECT_FALSE(silent->Finish().ok());
}

// The status of a refused message reaches the worker. That holds for a first message that is no hello, and for a wrong
// message after the hello.
TEST_F(WorkerSessionsTest, SaysWhatIsWrong) {
  Worker no_hello(port_, Heartbeat(1));
  const grpc::Status refused = no_hello.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused.error_message(), "a worker's first message is its hello");

  Worker two_hellos(port_, Hello("w1"));
  EXPECT_TRUE(two_hellos.Next().has_welcome());
  two_hellos.Send(Hello("w1"));
  EXPECT_FALSE(two_hellos.Next().has_welcome());
  const grpc::Status wrong = two_hellos.Finish();
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(wrong.error_message(), HasSubstr("after its hello a worker sends"));
}

// A worker that closes its side of the stream ends its session, and its name is free at once.
TEST_F(WorkerSessionsTest, TheWorkerEndsItsSession) {
  Worker worker(port_, Hello("w1"));
  EXPECT_TRUE(worker.Next().has_welcome());
  worker.SendsNoMore();
  EXPECT_TRUE(worker.Finish().ok());
  v1::WorkerMessage other = Hello("w1");
  other.mutable_hello()->set_instance("another");
  Worker next(port_, other);
  EXPECT_TRUE(next.Next().has_welcome());
}

// A worker does not read, and more commands wait for it than its connection takes. The worker connects again. The old
// session ends although a write of it is under way.
TEST_F(WorkerSessionsTest, DropsAWorkerThatDoesNotRead) {
  // Together about a megabyte. A stream takes only 64 KiB that its reader has not read.
  constexpr int kStops = 8000;
  Worker deaf(port_, Hello("w1", kStops));
  const absl::Time limit = absl::Now() + kDeadline;
  while (coordinator_->Nodes(InstantNow()).empty() && absl::Now() < limit) {
  }
  Worker again(port_, Hello("w1"));
  EXPECT_TRUE(again.Next().has_welcome());
  int stops = 0;
  for (v1::WorkerCommand next = deaf.Next(); next.has_welcome() || next.has_stop(); next = deaf.Next()) {
    if (next.has_stop()) ++stops;
  }
  EXPECT_LT(stops, kStops);
  EXPECT_EQ(deaf.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_TRUE(again.Send(Heartbeat(7)));
  EXPECT_EQ(again.Next().clock().sent_ns(), 7);
}

// A worker that does not read and then ends its session does not keep the call open for ever. The server's shutdown
// waits for the call. The worker itself would not see the end before it has read what its connection had taken.
TEST_F(WorkerSessionsTest, EndsTheCallOfAWorkerThatDoesNotRead) {
  // The stop of this group does not fit into the 64 KiB that a stream takes ahead of its reader.
  v1::WorkerMessage hello = Hello("w1", 1);
  hello.mutable_hello()->mutable_running(0)->set_job_id(std::string(1 << 20, 'j'));
  Worker deaf(port_, hello);
  EXPECT_TRUE(deaf.Next().has_welcome());
  // When the server has read all of these, it has already begun to write the stop.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(deaf.Send(Heartbeat(0)));
  deaf.SendsNoMore();
  const absl::Time begin = absl::Now();
  server_->Shutdown(absl::ToChronoTime(begin + kDeadline));
  EXPECT_GT(absl::Now() - begin, absl::Seconds(1)) << "the write was to be under way";
  EXPECT_LT(absl::Now() - begin, kDeadline / 2);
}

// Acknowledgements that need no store wait for other commands, but not for ever.
TEST_F(WorkerSessionsTest, AcknowledgesWithoutHeartbeats) {
  Worker worker(port_, Hello("w1"));
  EXPECT_TRUE(worker.Next().has_welcome());
  v1::WorkerMessage event;
  event.mutable_event()->mutable_group()->set_job_id("unknown-1");
  event.mutable_event()->mutable_group()->set_incarnation(1);
  event.mutable_event()->set_number(3);
  ASSERT_TRUE(worker.Send(event));
  EXPECT_EQ(worker.Next().seen().number(), 3u);
}

// The messages of a batch are taken one after another, and their answers come in one batch. A worker whose hello does
// not set takes_batches gets each command by itself.
TEST_F(WorkerSessionsTest, TakesAndSendsBatches) {
  v1::WorkerMessage batch;
  *batch.mutable_batch()->add_messages() = Heartbeat(7);
  for (uint64_t number = 1; number <= 2; ++number) {
    v1::GroupEvent* event = batch.mutable_batch()->add_messages()->mutable_event();
    event->mutable_group()->set_job_id("unknown-1");
    event->mutable_group()->set_incarnation(1);
    event->set_number(number);
  }
  v1::WorkerMessage hello = Hello("w1");
  hello.mutable_hello()->set_takes_batches(true);
  Worker worker(port_, hello);
  EXPECT_TRUE(worker.Next().welcome().takes_batches());
  ASSERT_TRUE(worker.Send(batch));
  const v1::WorkerCommand answer = worker.Next();
  ASSERT_EQ(answer.batch().commands_size(), 2) << answer.ShortDebugString();
  EXPECT_EQ(answer.batch().commands(0).clock().sent_ns(), 7);
  EXPECT_EQ(answer.batch().commands(1).seen().number(), 2u);

  Worker older(port_, Hello("w2"));
  EXPECT_TRUE(older.Next().has_welcome());
  ASSERT_TRUE(older.Send(batch));
  EXPECT_EQ(older.Next().clock().sent_ns(), 7);
  EXPECT_EQ(older.Next().seen().number(), 2u);
}

// A batch that is too long, or that holds what a batch may not hold, ends the session with an error.
TEST_F(WorkerSessionsTest, RefusesBadBatches) {
  std::vector<v1::WorkerMessage> bad(3);
  *bad[0].mutable_batch()->add_messages() = Hello("w2");
  bad[1].mutable_batch()->add_messages()->mutable_batch()->add_messages()->mutable_heartbeat();
  for (int i = 0; i < 1025; ++i) *bad[2].mutable_batch()->add_messages() = Heartbeat(i);
  for (const v1::WorkerMessage& message : bad) {
    Worker worker(port_, Hello("w1"));
    EXPECT_TRUE(worker.Next().has_welcome());
    ASSERT_TRUE(worker.Send(message));
    worker.SendsNoMore();
    const grpc::Status status = worker.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("a batch has "));
  }
}

}  // namespace
}  // namespace hooke
