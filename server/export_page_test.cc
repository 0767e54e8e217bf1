// A model is downloaded from the web page of a real coordinator, which passes it through from two servers.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/cluster/example_job.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_group.h"
#include "server/server_program.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr absl::Duration kDeadline = absl::Seconds(60);
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kCenterBytes = 256 * kMiB;

// A hooke-server with its own folder. The destructor kills it.
class Server {
 public:
  explicit Server(const std::string& folder, std::vector<std::string> flags) {
    const std::string ready = folder + "/ready";
    std::filesystem::create_directories(folder);
    flags.insert(flags.begin(), {"--listen=127.0.0.1:0", "--snapshot-interval=1h",
                                 absl::StrCat("--state-dir=", folder, "/state"), "--ready-file=" + ready});
    program_ = std::make_unique<ServerProgram>(folder, "server", flags);
    EXPECT_TRUE(WaitUntil([&] { return std::filesystem::exists(ready); }, kDeadline)) << program_->Output();
    std::ifstream lines(ready);
    std::string word;
    lines >> address_ >> word >> dashboard_;  // "HOST:PORT", and on the next line "dashboard HOST:PORT".
    EXPECT_NE(address_, "");
  }

  void Kill() { program_.reset(); }

  // Returns a field of the server's /proc/PID/status in bytes: "VmRSS" or "VmHWM".
  uint64_t Status(const std::string& field) const {
    std::ifstream lines(absl::StrCat("/proc/", program_->pid(), "/status"));
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
      uint64_t kibibytes = 0;
      if (words.size() == 3 && words[0] == field && absl::SimpleAtoi(words[1], &kibibytes)) return kibibytes << 10;
    }
    return 0;
  }
  // Makes VmHWM begin at VmRSS again.
  void ResetPeak() const { std::ofstream(absl::StrCat("/proc/", program_->pid(), "/clear_refs")) << 5; }

  const std::string& address() const { return address_; }
  const std::string& dashboard() const { return dashboard_; }

 private:
  std::unique_ptr<ServerProgram> program_;
  std::string address_;
  std::string dashboard_;
};

// A client of HTTP that reads as much as it is asked to.
class Browser {
 public:
  Browser(const std::string& address, const std::string& request) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(ParseHostPort(address)->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval limit = {60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(send(socket_, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  }
  ~Browser() { close(socket_); }

  // Reads until there are `size` bytes in all, or the answer ends. `error` is that of its end; 0: it ended well.
  const std::string& Read(size_t size) {
    std::vector<char> bytes(1 << 20);
    while (answer_.size() < size) {
      const ssize_t count = recv(socket_, bytes.data(), bytes.size(), 0);
      if (count <= 0) {
        error = count < 0 ? errno : 0;
        ended = true;
        break;
      }
      answer_.append(bytes.data(), static_cast<size_t>(count));
    }
    return answer_;
  }

  bool ended = false;
  int error = 0;

 private:
  const int socket_;
  std::string answer_;
};

std::string BodyOf(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

class ExportPageTest : public testing::Test {
 protected:
  ExportPageTest() {
    std::filesystem::remove_all(folder_);
    coordinator_ = std::make_unique<Server>(folder_ + "/a", std::vector<std::string>{"--dashboard=127.0.0.1:0"});
    server_ =
        std::make_unique<Server>(folder_ + "/b", std::vector<std::string>{"--coordinator=" + coordinator_->address()});
    stub_ = v1::Coordinator::NewStub(grpc::CreateChannel(coordinator_->address(), grpc::InsecureChannelCredentials()));
  }
  ~ExportPageTest() override {
    if (session_ != nullptr) {
      session_context_.TryCancel();
      (void)session_->Finish();
    }
    server_ = nullptr;
    coordinator_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  // Submits a job and places it on a worker that is this test. Returns the center's description for the servers.
  TestCenter Place() {
    EXPECT_TRUE(WaitUntil([&] { return Ask() == 2 || HasFailure(); }, kDeadline));
    v1::SubmitResponse submitted;
    grpc::ClientContext context;
    SetDeadline(&context);
    EXPECT_TRUE(stub_->Submit(&context, ExampleSubmission("s", {1, 1}), &submitted).ok());
    session_context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(5)));
    session_ = stub_->WorkerSession(&session_context_);
    v1::WorkerMessage hello;
    hello.mutable_hello()->set_name("w1");
    hello.mutable_hello()->set_instance("i");
    hello.mutable_hello()->set_site("hpc");
    hello.mutable_hello()->set_slots(1);
    EXPECT_TRUE(session_->Write(hello));
    v1::WorkerCommand command;
    while (session_->Read(&command) && !command.has_start()) {
    }
    TestCenter center;
    center.job_id = submitted.job_id();
    center.job_key = command.start().group().job_key();
    center.values = kCenterBytes / sizeof(float);
    center.groups = 1;
    center.shard_count = 2;
    return center;
  }

  // Gives the center its values, which are 0, 1/8, 2/8, ...
  void Fill(TestCenter center) {
    const std::vector<float> values = Ramp(0, center.values);
    for (const Server* server : {coordinator_.get(), server_.get()}) {
      TestGroup group(center, MakeSender(center), server->address());
      ASSERT_TRUE(group.Attach().ok());
      const absl::Status status = group.Initialize(values);
      ASSERT_TRUE(status.ok()) << status;
      ++center.shard_index;
    }
  }

  // Returns how many nodes the coordinator lists.
  int Ask() {
    v1::ListNodesResponse nodes;
    grpc::ClientContext context;
    SetDeadline(&context);
    EXPECT_TRUE(stub_->ListNodes(&context, {}, &nodes).ok());
    return nodes.nodes_size();
  }

  std::string Get(const std::string& path) const {
    return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }

  // Does what the page does before a download, and returns the whole answer.
  std::string Prepare(const std::string& job_id, const std::string& headers = "") const {
    Browser page(coordinator_->dashboard(), Get("/api/page"));
    const std::string key = nlohmann::json::parse(BodyOf(page.Read(SIZE_MAX)))["action_key"];
    Browser asks(coordinator_->dashboard(),
                 absl::StrCat("POST /api/export/", job_id, " HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Hooke-Action: ", key,
                              "\r\nContent-Length: 0\r\n", headers, "\r\n"));
    return asks.Read(SIZE_MAX);
  }

  std::unique_ptr<Browser> Download(const std::string& job_id) const {
    const std::string answer = Prepare(job_id);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    const std::string ticket = nlohmann::json::parse(BodyOf(answer))["ticket"];
    return std::make_unique<Browser>(coordinator_->dashboard(), Get("/api/download/" + ticket));
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/export_page");
  std::unique_ptr<Server> coordinator_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  grpc::ClientContext session_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::WorkerCommand>> session_;
};

// The model arrives whole, while the coordinator takes little memory for it and answers others as ever.
TEST_F(ExportPageTest, PassesALargeModelThrough) {
  const TestCenter center = Place();
  EXPECT_THAT(Prepare("none-7"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Prepare(center.job_id), HasSubstr("try again"));
  EXPECT_THAT(Prepare(center.job_id, "Origin: http://evil.example\r\n"), StartsWith("HTTP/1.1 403"));
  ASSERT_NO_FATAL_FAILURE(Fill(center));

  coordinator_->ResetPeak();
  const uint64_t before = coordinator_->Status("VmRSS");
  std::atomic<bool> stop = false;
  absl::Duration longest;
  std::thread others([&] {
    while (!stop) {
      const absl::Time begun = absl::Now();
      Ask();
      longest = std::max(longest, absl::Now() - begun);
    }
  });
  const absl::Time begun = absl::Now();
  const std::unique_ptr<Browser> browser = Download(center.job_id);
  const std::string& answer = browser->Read(SIZE_MAX);
  const absl::Duration took = absl::Now() - begun;
  stop = true;
  others.join();
  EXPECT_EQ(browser->error, 0);
  const size_t head = answer.find("\r\n\r\n") + 4;
  EXPECT_THAT(answer.substr(0, head), HasSubstr(absl::StrCat("filename=\"", center.job_id, ".safetensors\"")));
  const uint64_t grown = coordinator_->Status("VmHWM") - before;
  std::cout << kCenterBytes / kMiB << " MiB in " << took << "; the coordinator grew by " << grown / kMiB
            << " MiB; its slowest answer to another took " << longest << std::endl;
  EXPECT_LT(grown, 96 * kMiB);  // The allocator and gRPC keep some; a whole file in memory would take 256 MiB.
  EXPECT_LT(longest, absl::Seconds(1));
  const std::vector<float> values = Ramp(0, center.values);
  ASSERT_GT(answer.size(), head + kCenterBytes);
  EXPECT_TRUE(std::equal(answer.end() - kCenterBytes, answer.end(), reinterpret_cast<const char*>(values.data())));
  EXPECT_THAT(answer.substr(head + 8, 300), HasSubstr(R"({"__metadata__":{"format":"pt")"));
}

// Two browsers that read nothing take both slots, but nothing else. When a server dies under a download, that is cut,
// and the next one says before its first byte what is wrong.
TEST_F(ExportPageTest, SlowBrowsersAndLostServers) {
  const TestCenter center = Place();
  ASSERT_NO_FATAL_FAILURE(Fill(center));
  std::unique_ptr<Browser> slow = Download(center.job_id);
  std::unique_ptr<Browser> other = Download(center.job_id);
  for (Browser* browser : {slow.get(), other.get()}) EXPECT_THAT(browser->Read(1000), StartsWith("HTTP/1.1 200"));
  const std::string full = Prepare(center.job_id);
  EXPECT_THAT(full, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(full, HasSubstr("2 models go through the coordinator already"));
  Browser page(coordinator_->dashboard(), Get("/api/jobs"));
  EXPECT_THAT(page.Read(SIZE_MAX), StartsWith("HTTP/1.1 200"));

  // A browser that goes away frees its slot at once.
  other = nullptr;
  EXPECT_TRUE(WaitUntil(
      [&] {
        const std::string answer = Prepare(center.job_id);
        return absl::StartsWith(answer, "HTTP/1.1 200");
      },
      kDeadline));

  server_->Kill();
  const std::string& cut = slow->Read(SIZE_MAX);
  EXPECT_EQ(slow->error, ECONNRESET);
  EXPECT_LT(cut.size(), kCenterBytes);
  std::string away;
  EXPECT_TRUE(WaitUntil(
      [&] {
        away = Prepare(center.job_id);
        return away.find("models go through") == std::string::npos;
      },
      kDeadline));
  EXPECT_THAT(away, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(away, HasSubstr(absl::StrCat("cannot reach server ", server_->address(), ": Connection refused")));
}

}  // namespace
}  // namespace hooke
