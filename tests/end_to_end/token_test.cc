// A cluster with a token, as processes. The servers listen at 0.0.0.0 and are dialed there. Hooke takes 0.0.0.0 for an
// address that other machines can reach, and Linux connects it to this machine.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/job_text.h"
#include "worker/launch/process.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kJobLimit = absl::Seconds(120);
constexpr char kToken[] = "2f6c1d5e90b7a3486f0c2b9d7e15a84c";

// Returns the files below `folder` that contain `text`.
std::vector<std::string> FilesWith(const std::string& folder, const std::string& text) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (absl::StrContains(bytes, text)) found.push_back(entry.path().filename().string());
  }
  return found;
}

class TokenTest : public ::testing::Test {
 protected:
  // Starts as many servers as workers.
  void StartCluster(int of_each) {
    ClusterOptions options;
    options.servers = of_each;
    options.workers = of_each;
    options.host = "0.0.0.0";
    options.token = kToken;
    options.server_flags = {"--log-level=trace", "--advertise=0.0.0.0:0"};
    options.worker_flags = {"--log-level=trace", "--allow-commands"};
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  v1::JobStatus Succeed(const std::string& yaml) {
    const auto id = cluster_->Submit(yaml);
    EXPECT_TRUE(id.ok()) << id.status();
    if (!id.ok()) return {};
    const auto end = cluster_->AwaitEnd(*id, kJobLimit);
    EXPECT_TRUE(end.ok()) << end.status();
    if (!end.ok()) return {};
    EXPECT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason() << "\n" << cluster_->Log(*id);
    return *end;
  }

  std::unique_ptr<Cluster> cluster_;
};

// Ranks reach their center with the credential of their job, and `hooke export` reaches it with the token. No program
// writes the token into a file or its output, even at the most detailed log level.
TEST_F(TokenTest, TrainsExportsAndTellsNobody) {
  StartCluster(2);
  const std::string& folder = cluster_->folder();
  ASSERT_TRUE(WriteBars(folder + "/train", 2000, 1).ok());
  ASSERT_TRUE(WriteBars(folder + "/test", 500, 2).ok());
  JobText text;
  text.data = folder;
  const v1::JobStatus job = Succeed(ToYaml(text));
  EXPECT_GT(job.center().accuracy(), 0.9);
  EXPECT_EQ(job.servers_size(), 2);
  const ProgramResult exported = cluster_->Hooke({"export", job.job_id(), folder + "/model.safetensors"});
  EXPECT_EQ(exported.status, 0) << exported.output;
  // This command prints what its rank can see: the start file, the environment, and the command lines of all processes.
  Succeed(
      "name: look\ncommand: [sh, -c, 'cat $HOOKE_START; env; ps -eo args']\ngroups: {count: 1, ranks: 1}\n"
      "averaging: {rule: none}\n");
  const std::string log = cluster_->Log("look-2");
  EXPECT_THAT(log, AllOf(HasSubstr("HOOKE_START="), Not(HasSubstr("HOOKE_TOKEN_FILE"))));
  EXPECT_THAT(log, Not(HasSubstr(kToken)));
  for (const std::vector<std::string>& look :
       {std::vector<std::string>{"jobs", "--output", "json"}, {"jobs", job.job_id()}, {"nodes", "--output", "json"}}) {
    EXPECT_THAT(cluster_->Hooke(look).output, Not(HasSubstr(kToken)));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(cluster_->ServerOutput(i), AllOf(HasSubstr("token-file="), Not(HasSubstr(kToken))));
    EXPECT_THAT(cluster_->WorkerOutput(i), AllOf(HasSubstr("token-file="), Not(HasSubstr(kToken))));
  }
  for (const std::string& line : cluster_->CommandLinesOfCluster()) EXPECT_THAT(line, Not(HasSubstr(kToken)));
  fs::remove(folder + "/token");
  EXPECT_THAT(FilesWith(folder, kToken), IsEmpty());
}

// A user whose token is wrong, missing or readable by others is told what to do.
TEST_F(TokenTest, OtherUsersAreRefused) {
  StartCluster(1);
  const std::string other = cluster_->WritePrivateFile("other", "0123456789abcdef\n");
  const ProgramResult wrong = cluster_->Hooke({"jobs", "--token-file", other});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.output, HasSubstr(absl::StrCat("the coordinator at ", cluster_->server_address(0),
                                                   ": this is not the token of this cluster")));
  const ProgramResult submitted =
      cluster_->Hooke({"--token-file", other, "run", "--", "touch", cluster_->folder() + "/ran"});
  EXPECT_EQ(submitted.status, 1);
  EXPECT_FALSE(fs::exists(cluster_->folder() + "/ran"));
  const ProgramResult missing = cluster_->Hooke({"jobs", "--token-file", other + ".none"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.output, HasSubstr("other.none does not exist; make one with"));
  fs::permissions(other, fs::perms::group_read, fs::perm_options::add);
  EXPECT_THAT(cluster_->Hooke({"jobs", "--token-file", other}).output, HasSubstr("is open to others than its owner"));
}

// A worker with another token logs the refusal. `hooke nodes` does not list the worker.
TEST_F(TokenTest, AWorkerWithAnotherTokenNeverRegisters) {
  StartCluster(1);
  absl::Mutex mutex;
  std::string output;
  ProcessOptions options;
  options.argv = {fs::canonical("bin/hooke-worker").string(), "--coordinator=" + cluster_->server_address(0),
                  "--name=stranger", "--state-dir=" + cluster_->folder() + "/stranger",
                  "--token-file=" + cluster_->WritePrivateFile("other", "0123456789abcdef\n")};
  options.environment = {"HOME=" + cluster_->folder(), "PATH=/usr/local/bin:/usr/bin:/bin"};
  options.folder = cluster_->folder();
  options.on_line = [&](absl::string_view line) {
    absl::MutexLock lock(&mutex);
    absl::StrAppend(&output, line, "\n");
  };
  absl::StatusOr<std::unique_ptr<Process>> worker = Process::Start(std::move(options));
  ASSERT_TRUE(worker.ok()) << worker.status();
  {
    absl::MutexLock lock(&mutex);
    const auto refused = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return absl::StrContains(output, "refuses this worker: this is not the token of this cluster");
    };
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&refused), absl::Seconds(30))) << output;
  }
  EXPECT_THAT(cluster_->Hooke({"nodes"}).output, AllOf(HasSubstr("w0"), Not(HasSubstr("stranger"))));
  (*worker)->Stop(absl::Seconds(10));
}

// A daemon does not start if its environment names a token file that it cannot read.
TEST_F(TokenTest, DaemonsNeedTheirToken) {
  StartCluster(1);
  for (const char* program : {"hooke-server", "hooke-worker"}) {
    ProcessOptions options;
    options.argv = {fs::canonical(absl::StrCat("bin/", program)).string(), "--state-dir=" + cluster_->folder() + "/x"};
    options.environment = {"HOME=" + cluster_->folder(), "PATH=/usr/local/bin:/usr/bin:/bin",
                           "HOOKE_TOKEN_FILE=" + cluster_->folder() + "/no-such-file"};
    options.folder = cluster_->folder();
    std::string output;
    options.on_line = [&](absl::string_view line) { absl::StrAppend(&output, line, "\n"); };
    absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(std::move(options));
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->Wait(SteadyTime() + absl::Seconds(30)).value_or(ProcessEnd{-1, 0}).exit_status, 1);
    process->reset();  // After this no more lines come.
    EXPECT_THAT(output, HasSubstr("no-such-file does not exist; make one with"));
  }
}

}  // namespace
}  // namespace hooke
