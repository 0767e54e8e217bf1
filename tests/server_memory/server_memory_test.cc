// Measures the memory of a real hooke-server while many groups exchange with it. The server may take the center and the
// rule's state, a tenth of the center, and 64 MiB. With gRPC it may take 2 MiB more for each rank.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "algorithms/compression.h"
#include "algorithms/sharding.h"
#include "clocks/steady_time.h"
#include "proto/job.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/launch/proc_file.h"
#include "worker/launch/process.h"

namespace hooke {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kCenterBytes = 64 * kMiB;
constexpr uint64_t kFixedBytes = 64 * kMiB;
constexpr uint64_t kGrpcBytes = 2 * kMiB;  // For each rank: a connection, its threads, and messages that gRPC holds.
constexpr uint32_t kGroups = 32;
constexpr int kExchanges = 2;
constexpr absl::Duration kPatience = absl::Minutes(3);
const DialOptions kDirect = {/*local=*/false, /*direct=*/true};
const DialOptions kGrpc = {/*local=*/false, /*direct=*/false};

// A hooke-server with its own folder. Destroying the object ends the server and removes the folder.
class Server {
 public:
  Server() {
    std::string folder = "/tmp/hooke-memory-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    ProcessOptions options;
    options.argv = {std::filesystem::canonical("server/hooke-server").string(), "--listen=127.0.0.1:0",
                    absl::StrCat("--state-dir=", folder_, "/state"), absl::StrCat("--ready-file=", folder_, "/ready"),
                    "--log-level=warning"};
    options.folder = folder_;
    auto process = Process::Start(std::move(options));
    EXPECT_TRUE(process.ok()) << process.status();
    if (process.ok()) process_ = *std::move(process);
    const absl::Time deadline = absl::Now() + kPatience;
    while (address_.empty() && absl::Now() < deadline) {
      std::ifstream(folder_ + "/ready") >> address_;
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_NE(address_, "");
  }
  ~Server() {
    process_ = nullptr;
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::string& address() const { return address_; }

  // Returns a field of the server's /proc/PID/status in bytes. `field` is "VmRSS" or "VmHWM".
  uint64_t Status(absl::string_view field) const {
    const std::optional<std::string> text = ReadProcFile(process_->pid(), "status");
    for (const absl::string_view line : absl::StrSplit(text.value_or(""), '\n')) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
      uint64_t kibibytes = 0;
      if (words.size() == 3 && words[0] == field && absl::SimpleAtoi(words[1], &kibibytes)) return kibibytes << 10;
    }
    ADD_FAILURE() << "no " << field;
    return 0;
  }

 private:
  std::string folder_;
  std::unique_ptr<Process> process_;
  std::string address_;
};

// All groups of a job share these values. The vector never changes, because only the server's memory matters here.
struct Job {
  v1::JobSpecForShard spec;
  DialOptions dial;
  std::string address;
  Partition partition{kCenterBytes / sizeof(float)};
  std::vector<float> vector = std::vector<float>(kCenterBytes / sizeof(float), 1.0f);
};

v1::Sender SenderOf(uint32_t group, uint32_t rank) {
  v1::Sender sender;
  sender.set_job_id("memory-1");
  sender.set_group(group);
  sender.set_rank(rank);
  sender.set_incarnation(1);
  return sender;
}

std::unique_ptr<ServerCalls> Dial(const Job& job) { return DialServer(job.address, job.dial); }

// Attaches as rank 0 of a group does; this creates the center if there is none. Returns the window.
absl::StatusOr<uint32_t> Attach(const Job& job, uint32_t group) {
  const std::unique_ptr<ServerCalls> calls = Dial(job);
  CenterOptions center;
  center.sender = SenderOf(group, 0);
  center.job = job.spec;
  center.layout.parameters.push_back({"w", {job.partition.values()}});
  center.partition = job.partition;
  center.servers = {calls.get()};
  center.call_timeout = kPatience;
  const absl::StatusOr<Attached> attached = CenterClient(center).Attach(job.vector, SteadyTime() + kPatience);
  if (!attached.ok()) return attached.status();
  return attached->window_blocks;
}

absl::Status RunRank(const Job& job, const v1::Sender& sender, uint32_t window_blocks) {
  const std::unique_ptr<ServerCalls> calls = Dial(job);
  ExchangeOptions options;
  options.sender = sender;
  options.slices = job.spec.ranks();
  options.partition = job.partition;
  options.servers = {calls.get()};
  options.window_blocks = window_blocks;
  if (job.spec.compression() > 0) options.encoding.compression = static_cast<Compression>(job.spec.compression());
  options.recreate = [](size_t, absl::Time) { return absl::FailedPreconditionError("the server has lost the center"); };
  ExchangeClient exchanges(std::move(options));
  for (uint64_t sequence = 1; sequence <= kExchanges; ++sequence) {
    exchanges.Start({sequence, {kPatience, kPatience}}, job.vector, [](const BlockAnswer&) {});
    for (const ServerOutcome& outcome : exchanges.Wait()) {
      if (!outcome.status.ok()) return outcome.status;
    }
  }
  return absl::OkStatus();
}

// Attaches all groups; then all their ranks exchange at the same time. Expects every exchange to succeed.
void RunGroups(const Job& job) {
  uint32_t window_blocks = 0;
  for (uint32_t group = 0; group < kGroups; ++group) {
    const absl::StatusOr<uint32_t> window = Attach(job, group);
    ASSERT_TRUE(window.ok()) << window.status();
    window_blocks = *window;
  }
  std::vector<std::thread> threads;
  threads.reserve(size_t{kGroups} * job.spec.ranks());
  for (uint32_t group = 0; group < kGroups; ++group) {
    for (uint32_t rank = 0; rank < job.spec.ranks(); ++rank) {
      threads.emplace_back([&job, sender = SenderOf(group, rank), window_blocks] {
        const absl::Status status = RunRank(job, sender, window_blocks);
        EXPECT_TRUE(status.ok()) << "group " << sender.group() << ", rank " << sender.rank() << ": " << status;
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

v1::JobSpecForShard Spec(v1::AveragingSpec::Rule rule, uint32_t ranks) {
  v1::JobSpecForShard spec;
  spec.set_rule(rule);
  spec.set_alpha(0.02);
  spec.set_groups(kGroups);
  spec.set_ranks(ranks);
  spec.set_interval(1);
  spec.set_quorum(1);
  spec.set_grace_seconds(10);
  spec.set_epochs(1);
  spec.set_steps_per_epoch(1);
  spec.set_parameters(kCenterBytes / sizeof(float));
  spec.mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  spec.mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  spec.mutable_optimizer()->set_learning_rate(1e-3);
  return spec;
}

// Expects the server's peak memory to be at most `centers` + 0.1 times the center and 64 MiB. With gRPC it may take 2
// MiB more for each rank.
void ExpectLean(const v1::JobSpecForShard& spec, double centers, const DialOptions& dial = kDirect) {
  const Server server;
  Job job;
  job.spec = spec;
  job.dial = dial;
  job.address = server.address();
  ASSERT_NO_FATAL_FAILURE(RunGroups(job));
  const uint64_t grpc = dial.direct ? 0 : uint64_t{kGroups} * spec.ranks() * kGrpcBytes;
  const double most = (centers + 0.1) * kCenterBytes + static_cast<double>(kFixedBytes + grpc);
  const uint64_t resident = server.Status("VmRSS");
  const uint64_t highest = server.Status("VmHWM");
  EXPECT_LE(static_cast<double>(highest), most);
  EXPECT_GE(static_cast<double>(resident), centers * kCenterBytes);
  std::cout << "resident " << resident / kMiB << " MiB, at most " << highest / kMiB << " MiB, allowed "
            << static_cast<uint64_t>(most) / kMiB << " MiB\n";
}

// A rule without state needs one center. There are 32 groups of one rank.
TEST(ServerMemory, ElasticTakesOneCenter) { ExpectLean(Spec(v1::AveragingSpec::ELASTIC, 1), 1); }

// 32 groups of four ranks have 128 connections, for each of which the server keeps answers for repeats.
TEST(ServerMemory, ElasticTakesOneCenterWithManyRanks) { ExpectLean(Spec(v1::AveragingSpec::ELASTIC, 4), 1); }

// The groups exchange by gRPC.
TEST(ServerMemory, ElasticTakesOneCenterByGrpc) { ExpectLean(Spec(v1::AveragingSpec::ELASTIC, 1), 1, kGrpc); }

// With compression the server holds messages in encoded and in decoded form.
TEST(ServerMemory, ElasticTakesOneCenterWithCompression) {
  v1::JobSpecForShard spec = Spec(v1::AveragingSpec::ELASTIC, 4);
  spec.set_compression(v1::AveragingSpec::COMPRESSION_INT8);
  ExpectLean(spec, 1);
  ExpectLean(spec, 1, kGrpc);
}

// Momentum takes one center more.
TEST(ServerMemory, DiLoCoTakesTwoCenters) {
  v1::JobSpecForShard spec = Spec(v1::AveragingSpec::DILOCO, 1);
  spec.mutable_optimizer()->set_momentum(0.9);
  spec.mutable_optimizer()->set_nesterov(true);
  ExpectLean(spec, 2);
}

// Adam takes two centers more.
TEST(ServerMemory, AdamTakesThreeCenters) {
  v1::JobSpecForShard spec = Spec(v1::AveragingSpec::SYNC, 1);
  spec.mutable_optimizer()->set_name(v1::OptimizerSpec::ADAM);
  spec.mutable_optimizer()->set_beta1(0.9);
  spec.mutable_optimizer()->set_beta2(0.999);
  spec.mutable_optimizer()->set_epsilon(1e-8);
  ExpectLean(spec, 3);
}

}  // namespace
}  // namespace hooke
