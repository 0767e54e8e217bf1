#include "server/daemon.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/coordinator/example_job.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

class DaemonTest : public testing::Test {
 protected:
  DaemonTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
  }
  ~DaemonTest() override { std::filesystem::remove_all(folder_); }

  ServerOptions Options(const std::string& name) {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.state_dir = folder_ + "/" + name;
    options.version = "test";
    options.logger = std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::null_sink_mt>());
    return options;
  }

  std::unique_ptr<v1::Coordinator::Stub> StubOf(const ServerDaemon& daemon) {
    return v1::Coordinator::NewStub(grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials()));
  }

  const std::string folder_;
};

std::unique_ptr<grpc::ClientContext> Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  return context;
}

// A second server joins the first, in one process. The coordinator lists both and gives both to a job, its own first.
TEST_F(DaemonTest, TwoServersMakeACluster) {
  absl::StatusOr<std::unique_ptr<ServerDaemon>> first = ServerDaemon::Start(Options("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  ServerOptions joining = Options("second");
  joining.coordinator = (*first)->address();
  absl::StatusOr<std::unique_ptr<ServerDaemon>> second = ServerDaemon::Start(joining);
  ASSERT_TRUE(second.ok()) << second.status();

  std::unique_ptr<v1::Coordinator::Stub> stub = StubOf(**first);
  v1::ListNodesResponse nodes;
  for (int tries = 0; nodes.nodes_size() < 2 && tries < 2000; ++tries) {
    ASSERT_TRUE(stub->ListNodes(Context().get(), {}, &nodes).ok());
    std::this_thread::yield();
  }
  ASSERT_EQ(nodes.nodes_size(), 2);

  v1::SubmitResponse submitted;
  ASSERT_TRUE(stub->Submit(Context().get(), ExampleSubmission("s", {1, 1}), &submitted).ok());
  auto context = Context();
  auto session = stub->WorkerSession(context.get());
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_name("w1");
  hello.mutable_hello()->set_instance("i");
  hello.mutable_hello()->set_site("hpc");
  hello.mutable_hello()->set_slots(1);
  ASSERT_TRUE(session->Write(hello));
  v1::WorkerCommand command;
  ASSERT_TRUE(session->Read(&command));
  ASSERT_TRUE(session->Read(&command));
  EXPECT_THAT(command.start().group().servers(), testing::ElementsAre((*first)->address(), (*second)->address()));
  context->TryCancel();
  (void)session->Finish();

  // A server that is not the coordinator does not know this service.
  const grpc::Status status = StubOf(**second)->ListNodes(Context().get(), {}, &nodes);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// A state folder has one server at a time. When that has stopped, the next one finds its jobs.
TEST_F(DaemonTest, AStateFolderHasOneServer) {
  absl::StatusOr<std::unique_ptr<ServerDaemon>> first = ServerDaemon::Start(Options("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  v1::SubmitResponse submitted;
  ASSERT_TRUE(StubOf(**first)->Submit(Context().get(), ExampleSubmission("s"), &submitted).ok());
  const absl::Status refused = ServerDaemon::Start(Options("first")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            absl::StrCat("folder ", folder_, "/first is in use by another hooke-server: stop that one, or ",
                         "choose another with --state-dir"));
  EXPECT_TRUE((*first)->Stop().ok());
  EXPECT_TRUE((*first)->Stop().ok());
  *first = nullptr;
  first = ServerDaemon::Start(Options("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(StubOf(**first)->ListJobs(Context().get(), {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).job_id(), submitted.job_id());
}

// A message larger than the server takes is refused with its own code, and the server goes on.
TEST_F(DaemonTest, RefusesLargeMessages) {
  ServerOptions options = Options("first");
  options.max_message_bytes = 1 << 17;
  absl::StatusOr<std::unique_ptr<ServerDaemon>> daemon = ServerDaemon::Start(options);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  std::unique_ptr<v1::Coordinator::Stub> stub = StubOf(**daemon);
  v1::SubmitRequest large = ExampleSubmission("s");
  large.mutable_job()->mutable_data()->set_train(std::string(1 << 18, '/'));
  v1::SubmitResponse response;
  const grpc::Status status = stub->Submit(Context().get(), large, &response);
  EXPECT_EQ(FromGrpc(status),
            absl::ResourceExhaustedError(absl::StrCat("a message of ", large.ByteSizeLong(),
                                                      " bytes was refused, at most 131072 are taken: hooke-server "
                                                      "takes more with --max-message-bytes")));
  EXPECT_TRUE(stub->Submit(Context().get(), ExampleSubmission("s"), &response).ok());
}

// If an address cannot be used, the error says why and what to do.
TEST_F(DaemonTest, SaysWhyItCannotListen) {
  absl::StatusOr<std::unique_ptr<ServerDaemon>> first = ServerDaemon::Start(Options("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  ServerOptions options = Options("second");
  options.listen = (*first)->address();
  const absl::Status status = ServerDaemon::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            absl::StrCat("cannot listen on ", (*first)->address(),
                         ": address already in use: another server runs there, or choose another with --listen"));
}

}  // namespace
}  // namespace hooke
