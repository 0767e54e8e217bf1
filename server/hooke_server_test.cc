// Tests the hooke-server program as its user meets it: a process, its exit status, its lines, its signals.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/parameter_server.grpc.pb.h"
#include "server/cluster/example_job.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_group.h"
#include "server/parameters/test_grpc_exchanges.h"
#include "server/server_program.h"
#include "wire/frame.h"
#include "wire/frame_socket.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr absl::Duration kDeadline = absl::Seconds(30);

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

size_t ThreadsOf(const ServerProgram& program) {
  const std::filesystem::directory_iterator threads(absl::StrCat("/proc/", program.pid(), "/task"));
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

class HookeServerTest : public testing::Test {
 protected:
  HookeServerTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~HookeServerTest() override { std::filesystem::remove_all(folder_); }

  // Starts a server with its own state folder, waits until it serves, and returns its address.
  std::string Serve(std::unique_ptr<ServerProgram>& program, const std::string& name,
                    std::vector<std::string> flags = {}, const std::vector<std::string>& runner = {}) {
    const std::string ready = absl::StrCat(folder_, "/", name, ".ready");
    std::filesystem::remove(ready);
    flags.push_back(absl::StrCat("--state-dir=", folder_, "/", name));
    flags.push_back(absl::StrCat("--ready-file=", ready));
    if (flags[0].find("--listen") == std::string::npos) flags.push_back("--listen=127.0.0.1:0");
    program = std::make_unique<ServerProgram>(folder_, name, flags, runner);
    EXPECT_TRUE(WaitUntil([&] { return std::filesystem::exists(ready); })) << program->Output();
    return std::string(absl::StripSuffix(Contents(ready), "\n"));
  }

  const std::string folder_;
};

std::unique_ptr<v1::Coordinator::Stub> StubOf(const std::string& address) {
  return v1::Coordinator::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

std::unique_ptr<grpc::ClientContext> Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
  context->set_wait_for_ready(true);
  return context;
}

// Returns a socket that is connected to this port of this machine.
int ConnectTo(uint16_t port) {
  const absl::StatusOr<int> connected = ConnectTcp("127.0.0.1", port, kDeadline, [] { return false; });
  EXPECT_TRUE(connected.ok()) << connected.status();
  return connected.value_or(-1);
}

// If another server has the port, the program exits with 1. Its line says so and what to do.
TEST_F(HookeServerTest, SaysThatThePortIsInUse) {
  std::unique_ptr<ServerProgram> first;
  const std::string address = Serve(first, "first");
  ServerProgram second(folder_, "second", {"--listen=" + address, absl::StrCat("--state-dir=", folder_, "/second")});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.Output(),
              HasSubstr(absl::StrCat("cannot listen on ", address, ": address already in use: another server ",
                                     "runs there, or choose another with --listen\n")));
}

// SIGTERM and SIGINT end the program with status 0, even while someone watches.
TEST_F(HookeServerTest, StopsOnSignals) {
  for (int number : {SIGTERM, SIGINT}) {
    std::unique_ptr<ServerProgram> program;
    const std::string address = Serve(program, "first");
    std::unique_ptr<v1::Coordinator::Stub> stub = StubOf(address);
    v1::SubmitResponse submitted;
    ASSERT_TRUE(stub->Submit(Context().get(), ExampleSubmission("s"), &submitted).ok());
    auto context = Context();
    v1::WatchJobRequest watch;
    watch.set_job_id(submitted.job_id());
    auto reader = stub->WatchJob(context.get(), watch);
    v1::JobStatus status;
    ASSERT_TRUE(reader->Read(&status));
    program->Signal(number);
    EXPECT_EQ(program->Wait(), 0) << program->Output();
    EXPECT_THAT(program->Output(), HasSubstr("stopped"));
    while (reader->Read(&status)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

// Contributions wait for a round in the program, some over gRPC and some over sockets. They have no thread each, and
// SIGTERM ends the program within seconds.
TEST_F(HookeServerTest, StopsWhileContributionsWait) {
  constexpr uint32_t kGroups = 60;
  std::unique_ptr<ServerProgram> program;
  const std::string address = Serve(program, "second", {"--coordinator=127.0.0.1:1"});
  TestCenter center;
  center.groups = kGroups;
  center.values = 8;
  auto client = std::make_unique<TestGroup>(center, MakeSender(center), address);
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::AVERAGE, 1);
  request.mutable_job()->set_quorum(kGroups);
  for (uint32_t group = 0; group < kGroups; ++group) {
    request.mutable_sender()->set_group(group);
    v1::AttachResponse attached;
    const grpc::Status status = client->stub().Attach(Context().get(), request, &attached);
    ASSERT_TRUE(status.ok()) << status.error_message();
    if (group == 0) {
      ASSERT_TRUE(client->Initialize(std::vector<float>(center.values)).ok());
    }
  }
  v1::LocateResponse located;
  ASSERT_TRUE(client->stub().Locate(Context().get(), {}, &located).ok());
  const size_t threads = ThreadsOf(*program);
  const std::vector<float> values(center.values, 1);
  const ValuesHeader header = {1, 0, center.values};
  std::vector<std::unique_ptr<TestStream>> streams;
  std::vector<std::unique_ptr<FrameSocket>> sockets;
  for (uint32_t group = 0; group + 1 < kGroups; ++group) {
    const v1::Sender sender = MakeSender(center, group);
    if (group % 2 == 0) {
      streams.push_back(std::make_unique<TestStream>(*client, sender));
      ASSERT_TRUE(streams.back()->Send(1, values));
      continue;
    }
    const auto port = static_cast<uint16_t>(located.port());
    sockets.push_back(
        std::make_unique<FrameSocket>(ConnectTcp("127.0.0.1", port, kDeadline, [] { return false; }).value()));
    const auto* const bytes = reinterpret_cast<const char*>(values.data());
    ASSERT_TRUE(sockets.back()->SendOpening(sender).ok());
    ASSERT_TRUE(sockets.back()->SendPayload(header, {bytes, values.size() * sizeof(float)}).ok());
  }
  ASSERT_TRUE(client->stub().Locate(Context().get(), {}, &located).ok());
  EXPECT_LE(ThreadsOf(*program), threads + 8) << "gRPC makes a few threads as it needs them";
  const absl::Time begin = absl::Now();
  program->Signal(SIGTERM);
  for (const auto& stream : streams) EXPECT_FALSE(stream->Finish().ok());
  // gRPC waits five seconds for connections whose peers do nothing.
  streams.clear();
  client.reset();
  EXPECT_EQ(program->Wait(), 0) << program->Output();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(8));
  EXPECT_THAT(program->Output(),
              AllOf(HasSubstr("stopped"), Not(HasSubstr("not ended")), Not(HasSubstr("left behind"))));
}

// Silent connections to both ports of a server, more than the files that it may open, keep it neither from answering
// nor from ending.
TEST_F(HookeServerTest, SilentConnectionsDoNotHoldIt) {
  std::unique_ptr<ServerProgram> program;
  const std::string address = Serve(program, "first", {}, {"prlimit", "--nofile=64:256"});
  EXPECT_THAT(program->Output(), HasSubstr("may open 256 files at a time"));
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  const auto stub = v1::ParameterServer::NewStub(channel);
  v1::LocateResponse located;
  ASSERT_TRUE(stub->Locate(Context().get(), {}, &located).ok());
  std::vector<int> silent;
  silent.reserve(320);
  for (int i = 0; i < 300; ++i) silent.push_back(ConnectTo(static_cast<uint16_t>(located.port())));
  for (int i = 0; i < 20; ++i) silent.push_back(ConnectTo(ParseHostPort(address)->port));
  EXPECT_TRUE(stub->Locate(Context().get(), {}, &located).ok());
  v1::SubmitResponse submitted;
  EXPECT_TRUE(StubOf(address)->Submit(Context().get(), ExampleSubmission("s"), &submitted).ok());
  program->Signal(SIGTERM);
  EXPECT_EQ(program->Wait(), 0) << program->Output();
  for (const int descriptor : silent) close(descriptor);
}

// The process may have hardly more threads than it has when it serves. Silent connections to both ports and calls at
// once keep it neither from answering later calls nor from ending.
TEST_F(HookeServerTest, EndsAlthoughNoThreadCanBeMade) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to run the server as a user whose number of threads is limited";
  // Root's threads are not limited. The server runs under a user ID that nobody else has on this machine, so the limit
  // counts only its threads. It reads and writes files as root would, also by access(), which needs no_setuid_fixup.
  const std::string user = absl::StrCat(1 << 20 | getpid());
  std::vector<std::string> runner = {"setpriv",
                                     "--securebits=+no_setuid_fixup",
                                     absl::StrCat("--reuid=", user),
                                     "--clear-groups",
                                     absl::StrCat("--regid=", user),
                                     "--inh-caps=-all,+dac_override",
                                     "--ambient-caps=-all,+dac_override"};
  std::unique_ptr<ServerProgram> program;
  v1::LocateResponse located;
  const auto locate = [&located](const std::string& address) {
    const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    return v1::ParameterServer::NewStub(channel)->Locate(Context().get(), {}, &located);
  };
  ASSERT_TRUE(locate(Serve(program, "unlimited", {}, runner)).ok());
  // Their number varies by a few while the process starts.
  const size_t threads = ThreadsOf(*program) + 4;
  program->Signal(SIGTERM);
  ASSERT_EQ(program->Wait(), 0) << program->Output();
  runner.insert(runner.end(), {"prlimit", absl::StrCat("--nproc=", threads)});
  const std::string address = Serve(program, "first", {}, runner);
  ASSERT_TRUE(locate(address).ok());
  std::vector<int> silent;
  silent.reserve(300);
  for (int i = 0; i < 150; ++i) {
    silent.push_back(ConnectTo(static_cast<uint16_t>(located.port())));
    silent.push_back(ConnectTo(ParseHostPort(address)->port));
  }
  // A call for which there is no thread is refused, not left waiting.
  std::vector<std::thread> callers;
  callers.reserve(30);
  for (int i = 0; i < 30; ++i) {
    callers.emplace_back([i, &address] {
      v1::SubmitResponse submitted;
      const grpc::Status status =
          StubOf(address)->Submit(Context().get(), ExampleSubmission(absl::StrCat("s", i)), &submitted);
      EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(locate(address).ok());
  EXPECT_LE(ThreadsOf(*program), threads);
  program->Signal(SIGTERM);
  EXPECT_EQ(program->Wait(), 0) << program->Output();
  for (const int descriptor : silent) close(descriptor);
}

// A coordinator is killed right after Submit was answered. The next process on the same folder and port has the job.
TEST_F(HookeServerTest, AKilledCoordinatorLosesNothing) {
  std::unique_ptr<ServerProgram> program;
  const std::string address = Serve(program, "first");
  v1::SubmitResponse submitted;
  ASSERT_TRUE(StubOf(address)->Submit(Context().get(), ExampleSubmission("s"), &submitted).ok());
  program->Signal(SIGKILL);
  EXPECT_EQ(program->Wait(), 128 + SIGKILL);
  EXPECT_EQ(Serve(program, "first", {"--listen=" + address}), address);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(StubOf(address)->ListJobs(Context().get(), {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).job_id(), submitted.job_id());
}

// A server whose coordinator is not there says so and goes on trying.
TEST_F(HookeServerTest, KeepsTryingToJoin) {
  std::unique_ptr<ServerProgram> program;
  Serve(program, "second", {"--coordinator=127.0.0.1:1"});
  EXPECT_TRUE(WaitUntil([&] {
    return program->Output().find("coordinator 127.0.0.1:1 does not answer") != std::string::npos;
  })) << program->Output();
  program->Signal(SIGTERM);
  EXPECT_EQ(program->Wait(), 0);
}

// A damaged job store is refused by name and not overwritten.
TEST_F(HookeServerTest, RefusesADamagedJobStore) {
  std::filesystem::create_directories(folder_ + "/first");
  std::ofstream(folder_ + "/first/coordinator.db") << std::string(4096, 'x');
  ServerProgram program(folder_, "first", {"--listen=127.0.0.1:0", absl::StrCat("--state-dir=", folder_, "/first")});
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.Output(), HasSubstr(absl::StrCat("job store ", folder_, "/first/coordinator.db is damaged")));
}

// A mistake on the command line is exit status 2.
TEST_F(HookeServerTest, UsageIsTwo) {
  ServerProgram program(folder_, "first", {"--nonsense"});
  EXPECT_EQ(program.Wait(), 2);
  EXPECT_THAT(program.Output(), HasSubstr("--nonsense"));
  ServerProgram version(folder_, "version", {"--version"});
  EXPECT_EQ(version.Wait(), 0);
  EXPECT_THAT(version.Output(), testing::MatchesRegex("hooke-server [0-9.]+\n"));
}

}  // namespace
}  // namespace hooke
