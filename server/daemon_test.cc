#include "server/daemon.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/cluster/example_job.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_group.h"
#include "wire/channel.h"
#include "wire/cluster_token.h"
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

  // Returns the options of a server that joins `coordinator`. JoinedLog returns its log.
  ServerOptions Joining(const std::string& name, const ServerDaemon& coordinator) {
    ServerOptions options = Options(name);
    options.coordinator = coordinator.address();
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(absl::StrCat(folder_, "/", name, ".log"));
    options.logger = std::make_shared<spdlog::logger>(name, std::move(sink));
    options.logger->flush_on(spdlog::level::info);
    return options;
  }

  std::string JoinedLog(const std::string& name) const {
    std::ifstream file(absl::StrCat(folder_, "/", name, ".log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string folder_;
};

std::unique_ptr<grpc::ClientContext> Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  return context;
}

// Calls `done` until it returns true. It polls, because nobody tells the test when a heartbeat has arrived. False: it
// took too long.
bool WaitUntil(const std::function<bool()>& done) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (!done()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

// Returns the listed servers at `address`.
std::vector<v1::NodeStatus> ServersAt(v1::Coordinator::Stub& stub, const std::string& address) {
  v1::ListNodesResponse nodes;
  EXPECT_TRUE(stub.ListNodes(Context().get(), {}, &nodes).ok());
  std::vector<v1::NodeStatus> found;
  for (const v1::NodeStatus& node : nodes.nodes()) {
    if (node.name() == address) found.push_back(node);
  }
  return found;
}

// Submits a job that wants `servers` servers, and returns its id.
std::string SubmitFor(v1::Coordinator::Stub& stub, uint32_t servers) {
  v1::SubmitRequest request = ExampleSubmission(absl::StrCat("wants ", servers), {1, 1});
  request.mutable_job()->mutable_averaging()->set_servers(servers);
  v1::SubmitResponse submitted;
  EXPECT_TRUE(stub.Submit(Context().get(), request, &submitted).ok());
  return submitted.job_id();
}

std::string ReasonOf(v1::Coordinator::Stub& stub, const std::string& job_id) {
  v1::ListJobsResponse jobs;
  EXPECT_TRUE(stub.ListJobs(Context().get(), {}, &jobs).ok());
  for (const v1::JobStatus& job : jobs.jobs()) {
    if (job.job_id() == job_id) return job.reason();
  }
  return "no such job";
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

// A wrong --advertise: the job that waits for the server says what is wrong, and so do the list of nodes and the
// server's own log. With the right one the same folder is the same server, and the job waits for a worker only.
TEST_F(DaemonTest, SaysThatAnAdvertisedAddressCannotBeReached) {
  absl::StatusOr<std::unique_ptr<ServerDaemon>> first = ServerDaemon::Start(Options("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  ServerOptions joining = Joining("second", **first);
  joining.advertise = "127.0.0.1:1";  // Nobody listens on this reserved port.
  absl::StatusOr<std::unique_ptr<ServerDaemon>> second = ServerDaemon::Start(joining);
  ASSERT_TRUE(second.ok()) << second.status();
  const std::unique_ptr<v1::Coordinator::Stub> stub = StubOf(**first);
  const std::string job = SubmitFor(*stub, 2);
  const std::string problem =
      "advertises 127.0.0.1:1, which the coordinator cannot reach: connection refused; check --advertise";
  EXPECT_TRUE(WaitUntil([&] {
    return ReasonOf(*stub, job) ==
           absl::StrCat("1st in the queue; 2 servers needed, 2 have joined, 1 can be used; one ", problem);
  })) << ReasonOf(*stub, job);
  ASSERT_EQ(ServersAt(*stub, "127.0.0.1:1").size(), 1u);
  EXPECT_EQ(ServersAt(*stub, "127.0.0.1:1")[0].problem(), problem);
  const std::string identity = ServersAt(*stub, "127.0.0.1:1")[0].server_id();
  EXPECT_TRUE(WaitUntil([&] {
    return absl::StrContains(JoinedLog("second"),
                             absl::StrCat("the coordinator places nothing on this server, which ", problem));
  })) << JoinedLog("second");

  *second = nullptr;
  second = ServerDaemon::Start(Joining("second", **first));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(WaitUntil([&] { return ReasonOf(*stub, job) == "1st in the queue; no worker is there"; }))
      << ReasonOf(*stub, job);
  ASSERT_EQ(ServersAt(*stub, (*second)->address()).size(), 1u);
  EXPECT_EQ(ServersAt(*stub, (*second)->address())[0].server_id(), identity);
  EXPECT_THAT(ServersAt(*stub, "127.0.0.1:1"), testing::IsEmpty());
}

// Two servers that advertise one address count as two. The one that does not answer there is told so, and gets no job.
TEST_F(DaemonTest, TwoServersWithOneAddressAreTwo) {
  absl::StatusOr<std::unique_ptr<ServerDaemon>> first = ServerDaemon::Start(Options("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  ServerOptions joining = Joining("second", **first);
  joining.advertise = (*first)->address();
  absl::StatusOr<std::unique_ptr<ServerDaemon>> second = ServerDaemon::Start(joining);
  ASSERT_TRUE(second.ok()) << second.status();
  const std::unique_ptr<v1::Coordinator::Stub> stub = StubOf(**first);
  EXPECT_TRUE(WaitUntil([&] { return ServersAt(*stub, (*first)->address()).size() == 2; }));
  EXPECT_TRUE(WaitUntil([&] { return absl::StrContains(JoinedLog("second"), "is also advertised by server"); }))
      << JoinedLog("second");
  EXPECT_THAT(JoinedLog("second"), testing::HasSubstr("which answers there; give --advertise an address that workers"));
  EXPECT_EQ(ReasonOf(*stub, SubmitFor(*stub, 1)), "1st in the queue; no worker is there");
  EXPECT_THAT(ReasonOf(*stub, SubmitFor(*stub, 2)),
              testing::StartsWith("2nd in the queue; 2 servers needed, 2 have joined, 1 can be used"));
}

// The folder of a live server is copied, and a server started with the copy: it is refused, and says why.
TEST_F(DaemonTest, RefusesACopiedFolder) {
  absl::StatusOr<std::unique_ptr<ServerDaemon>> first = ServerDaemon::Start(Options("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  absl::StatusOr<std::unique_ptr<ServerDaemon>> second = ServerDaemon::Start(Joining("second", **first));
  ASSERT_TRUE(second.ok()) << second.status();
  const std::unique_ptr<v1::Coordinator::Stub> stub = StubOf(**first);
  EXPECT_TRUE(WaitUntil([&] { return ServersAt(*stub, (*second)->address()).size() == 1; }));
  std::filesystem::create_directories(folder_ + "/copy");
  std::filesystem::copy_file(folder_ + "/second/identity", folder_ + "/copy/identity");
  absl::StatusOr<std::unique_ptr<ServerDaemon>> copy = ServerDaemon::Start(Joining("copy", **first));
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(WaitUntil([&] {
    return absl::StrContains(JoinedLog("copy"), absl::StrCat("of a server that is alive at ", (*second)->address(),
                                                             ": one has a copy of the other's --state-dir"));
  })) << JoinedLog("copy");
  EXPECT_EQ(ServersAt(*stub, (*second)->address())[0].problem(), "");
  ASSERT_EQ(ServersAt(*stub, (*copy)->address()).size(), 1u);
  EXPECT_NE(ServersAt(*stub, (*copy)->address())[0].problem(), "");
}

// A damaged identity is refused by name: a new one would leave the folder's centers without their server.
TEST_F(DaemonTest, RefusesADamagedIdentity) {
  std::filesystem::create_directories(folder_ + "/first");
  std::ofstream(folder_ + "/first/identity") << "12";
  const absl::Status status = ServerDaemon::Start(Options("first")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr(absl::StrCat(folder_, "/first/identity is damaged: restore it from a copy")));
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

// A forgotten job's shards are freed on all servers: at once where a server is there, and when it is back where it was
// away. The shard of a job that nobody forgot stays.
TEST_F(DaemonTest, ForgetsAJobOnAllServers) {
  auto first = std::move(ServerDaemon::Start(Options("first"))).value();
  ServerOptions joining = Options("second");
  joining.coordinator = first->address();
  auto second = std::move(ServerDaemon::Start(joining)).value();
  std::unique_ptr<v1::Coordinator::Stub> stub = StubOf(*first);
  const auto make_center = [&](const ServerDaemon& server, const std::string& job_id, const std::string& key) {
    TestCenter center;
    center.job_id = job_id;
    center.job_key = key;
    TestGroup group(center, MakeSender(center), server.address());
    ASSERT_EQ(group.Attach().value().state(), v1::AttachResponse::INITIALIZE);
    ASSERT_TRUE(group.Initialize(Ramp(0, center.values)).ok());
  };
  for (const char* submission : {"s1", "s2"}) {
    v1::SubmitResponse submitted;
    ASSERT_TRUE(stub->Submit(Context().get(), ExampleSubmission(submission), &submitted).ok());
    make_center(*first, submitted.job_id(), submission);
    make_center(*second, submitted.job_id(), submission);
    v1::CancelJobRequest cancel;
    cancel.set_job_id(submitted.job_id());
    v1::CancelJobResponse cancelled;
    ASSERT_TRUE(stub->CancelJob(Context().get(), cancel, &cancelled).ok());
  }
  EXPECT_TRUE(second->Stop().ok());
  second = nullptr;
  v1::ForgetJobRequest forget;
  forget.set_job_id("fashion-1");
  v1::ForgetJobResponse forgotten;
  ASSERT_TRUE(stub->ForgetJob(Context().get(), forget, &forgotten).ok());
  EXPECT_EQ(forgotten.job().job_id(), "fashion-1");
  EXPECT_EQ(stub->ForgetJob(Context().get(), forget, &forgotten).error_code(), grpc::StatusCode::NOT_FOUND);

  // Returns whether the server removes its files of the job within a bounded time. Calls of ListNodes pass the time.
  const auto frees = [&](const std::string& server, const std::string& job_id) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    v1::ListNodesResponse nodes;
    for (bool found = true; absl::Now() < deadline;) {
      found = false;
      for (const auto& file : std::filesystem::directory_iterator(folder_ + "/" + server + "/centers")) {
        found = found || absl::StartsWith(file.path().filename().string(), job_id + ".");
      }
      if (!found) return true;
      (void)stub->ListNodes(Context().get(), {}, &nodes);
    }
    return false;
  };
  EXPECT_TRUE(frees("first", "fashion-1"));
  second = std::move(ServerDaemon::Start(joining)).value();
  EXPECT_TRUE(frees("second", "fashion-1"));
  for (const char* server : {"first", "second"}) {
    const std::string centers = absl::StrCat(folder_, "/", server, "/centers");
    EXPECT_FALSE(std::filesystem::is_empty(centers)) << "fashion-2 stays";
  }
}

// Calls the method, sends no message, and returns the status.
grpc::Status CallOf(const ServerDaemon& daemon, const google::protobuf::MethodDescriptor& method,
                    const CallCredential& credential) {
  const auto channel = OpenChannel(daemon.address(), grpc::ChannelArguments(), credential);
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const std::unique_ptr<grpc::ClientContext> context = Context();
  const auto call =
      stub.PrepareCall(context.get(), absl::StrCat("/", method.service()->full_name(), "/", method.name()), &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  call->WritesDone(nullptr);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  return status;
}

// With a token, each method of each service is closed to callers without it, however the method is served. The methods
// for ranks take the credential of a job besides. A new method is closed until MethodsForRanks names it.
TEST_F(DaemonTest, EveryMethodAsksForTheToken) {
  ServerOptions options = Options("first");
  options.token = ClusterToken("a token of enough characters");
  absl::StatusOr<std::unique_ptr<ServerDaemon>> daemon = ServerDaemon::Start(options);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const std::set<std::string> for_ranks = {"Attach", "Initialize", "Exchange",  "Locate",     "Pace",
                                           "Pull",   "Save",       "KeepState", "FetchState", "ReadExchanges"};
  const ClusterToken other("another token of this sort..");
  const auto refused = grpc::StatusCode::UNAUTHENTICATED;
  int methods = 0;
  for (const auto* service :
       {v1::SubmitRequest::descriptor()->file()->service(0), v1::AttachRequest::descriptor()->file()->service(0)}) {
    for (int i = 0; i < service->method_count(); ++i, ++methods) {
      const google::protobuf::MethodDescriptor& method = *service->method(i);
      const bool rank = service->name() == "ParameterServer" && for_ranks.count(method.name()) > 0;
      EXPECT_EQ(CallOf(**daemon, method, {}).error_code(), refused) << method.full_name();
      EXPECT_EQ(CallOf(**daemon, method, other.ForCalls()).error_code(), refused) << method.full_name();
      EXPECT_EQ(CallOf(**daemon, method, other.ForJob("a-1")).error_code(), refused) << method.full_name();
      EXPECT_EQ(CallOf(**daemon, method, options.token.ForJob("a-1")).error_code() == refused, !rank)
          << method.full_name();
      EXPECT_NE(CallOf(**daemon, method, options.token.ForCalls()).error_code(), refused) << method.full_name();
    }
  }
  EXPECT_GE(methods, 18);
}

// A job's ranks attach and pull their own center only. The first Attach makes the center, which then knows the job's
// key. So until then only the caller's credential can tell jobs apart.
TEST_F(DaemonTest, AJobsCredentialReachesItsOwnCenterOnly) {
  ServerOptions options = Options("first");
  options.token = ClusterToken("a token of enough characters");
  absl::StatusOr<std::unique_ptr<ServerDaemon>> daemon = ServerDaemon::Start(options);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const v1::AttachRequest request = MakeAttachRequest(TestCenter());
  const std::string& job = request.sender().job_id();
  const auto attach = [&](const std::string& of) {
    v1::AttachResponse response;
    const auto channel = OpenChannel((*daemon)->address(), grpc::ChannelArguments(), options.token.ForJob(of));
    return v1::ParameterServer::NewStub(channel)->Attach(Context().get(), request, &response);
  };
  EXPECT_EQ(attach("other-1").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(attach(job).ok());
  const auto pull = [&](const std::string& of) {
    const auto channel = OpenChannel((*daemon)->address(), grpc::ChannelArguments(), options.token.ForJob(of));
    const std::unique_ptr<v1::ParameterServer::Stub> stub = v1::ParameterServer::NewStub(channel);
    v1::PullRequest wanted;
    wanted.set_job_id(job);
    const std::unique_ptr<grpc::ClientContext> context = Context();
    const auto stream = stub->Pull(context.get(), wanted);
    v1::PullResponse part;
    while (stream->Read(&part)) {
    }
    return stream->Finish().error_code();
  };
  EXPECT_EQ(pull("other-1"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(pull(job), grpc::StatusCode::PERMISSION_DENIED);
  const auto read_exchanges = [&](const CallCredential& credential) {
    const auto channel = OpenChannel((*daemon)->address(), grpc::ChannelArguments(), credential);
    v1::ReadExchangesRequest wanted;
    wanted.set_job_id(job);
    v1::ReadExchangesResponse exchanges;
    return v1::ParameterServer::NewStub(channel)->ReadExchanges(Context().get(), wanted, &exchanges).error_code();
  };
  EXPECT_EQ(read_exchanges(options.token.ForJob("other-1")), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(read_exchanges(options.token.ForJob(job)), grpc::StatusCode::OK);
  EXPECT_EQ(read_exchanges(options.token.ForCalls()), grpc::StatusCode::OK);
}

// Servers with one token find each other. One with another token is refused, and logs that.
TEST_F(DaemonTest, ServersShareTheToken) {
  ServerOptions options = Options("first");
  options.token = ClusterToken("a token of enough characters");
  absl::StatusOr<std::unique_ptr<ServerDaemon>> first = ServerDaemon::Start(options);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto stub =
      v1::Coordinator::NewStub(OpenChannel((*first)->address(), grpc::ChannelArguments(), options.token.ForCalls()));
  ServerOptions joining = Joining("second", **first);
  joining.token = options.token;
  absl::StatusOr<std::unique_ptr<ServerDaemon>> second = ServerDaemon::Start(joining);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(WaitUntil([&] {
    const std::vector<v1::NodeStatus> found = ServersAt(*stub, (*second)->address());
    return found.size() == 1 && found[0].alive() && found[0].problem().empty();
  }));
  ServerOptions stranger = Joining("third", **first);
  stranger.token = ClusterToken("another token of this sort..");
  absl::StatusOr<std::unique_ptr<ServerDaemon>> third = ServerDaemon::Start(stranger);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_TRUE(WaitUntil([&] { return absl::StrContains(JoinedLog("third"), "refuses this server: this is not"); }));
  EXPECT_TRUE(ServersAt(*stub, (*third)->address()).empty());
}

// A server that other machines reach says at its start that it lacks a token.
TEST_F(DaemonTest, WarnsWhereItLacksAToken) {
  for (const bool has_token : {false, true}) {
    const std::string name = has_token ? "with" : "without";
    ServerOptions options = Options(name);
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(absl::StrCat(folder_, "/", name, ".log"));
    options.logger = std::make_shared<spdlog::logger>(name, std::move(sink));
    options.logger->flush_on(spdlog::level::info);
    options.listen = "0.0.0.0:0";
    options.advertise = "127.0.0.1:0";
    if (has_token) options.token = ClusterToken("a token of enough characters");
    ASSERT_TRUE(ServerDaemon::Start(options).ok());
    EXPECT_EQ(absl::StrContains(JoinedLog(name), "there is no --token-file"), !has_token);
  }
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
