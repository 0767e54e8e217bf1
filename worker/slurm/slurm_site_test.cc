// The agent of a site with a coordinator of its own, and with shell scripts that stand for Slurm's programs.

#include "worker/slurm/slurm_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "spdlog/sinks/null_sink.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kWait = absl::Seconds(20);

// Answers heartbeats as the test says, and keeps them.
class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  FakeCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeCoordinator() override { server_->Shutdown(); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // Makes groups of one rank wait in job a-1. Its batch job `runs`, if given, has a worker on which a group runs.
  void SetWaiting(int groups, const std::string& runs = "") {
    absl::MutexLock lock(&mutex_);
    response_.clear_jobs();
    v1::SiteJob& job = *response_.add_jobs();
    job.set_job_id("a-1");
    for (int i = 0; i < groups; ++i) job.add_waiting_ranks(1);
    if (runs.empty()) return;
    v1::SiteWorker& worker = *job.add_workers();
    worker.set_name("n0-" + runs);
    worker.set_slots(1);
    worker.set_slots_used(1);
  }
  void Refuse(int times) {
    absl::MutexLock lock(&mutex_);
    refusals_ = times;
  }
  // Returns whether such a heartbeat has come or comes soon.
  bool WaitFor(const std::function<bool(const v1::SiteHeartbeatRequest&)>& wanted) {
    const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::any_of(heartbeats_.begin(), heartbeats_.end(), wanted);
    };
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&came), kWait);
  }
  bool WaitForCount(size_t count) {
    const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return heartbeats_.size() >= count; };
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&came), kWait);
  }
  // Returns whether two more heartbeats come soon, the last of them without a note. By then, the agent has looked at
  // its queue since this call.
  bool WaitForQuiet() {
    absl::MutexLock lock(&mutex_);
    const size_t before = heartbeats_.size();
    const auto quiet = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return heartbeats_.size() >= before + 2 && heartbeats_.back().notes().empty();
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&quiet), kWait);
  }
  bool WaitForNote(const std::string& part) {
    return WaitFor([&part](const v1::SiteHeartbeatRequest& heartbeat) {
      return heartbeat.notes_size() == 1 && heartbeat.notes(0).job_id() == "a-1" &&
             absl::StrContains(heartbeat.notes(0).text(), part);
    });
  }

 private:
  grpc::Status SiteHeartbeat(grpc::ServerContext* /*context*/, const v1::SiteHeartbeatRequest* request,
                             v1::SiteHeartbeatResponse* response) override {
    absl::MutexLock lock(&mutex_);
    if (refusals_ > 0) {
      --refusals_;
      return {grpc::StatusCode::ALREADY_EXISTS, "another process gets workers for site hpc"};
    }
    heartbeats_.push_back(*request);
    *response = response_;
    return grpc::Status::OK;
  }

  int port_ = 0;
  absl::Mutex mutex_;
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::SiteHeartbeatResponse response_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::SiteHeartbeatRequest> heartbeats_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

class SlurmSiteTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ + "/bin");
    // The agent asks squeue how batch jobs ended by the word --jobs=IDS. Without it, squeue prints the queue.
    Program("squeue",
            "[ -z \"$SQUEUE_PARTITION\" ] || exit 1\n"
            "for word; do case $word in --jobs=*) echo x >> asked; exec cat ends;; esac; done; cat queue");
    Program("sbatch",
            "echo x >> submitted; id=$(wc -l < submitted); echo $id\n"
            "for word; do case $word in --comment=*) echo \"$id|PENDING|Priority|${word#*=}\" >> queue;; esac; done");
    Program("scancel", "exit 0");
    Write("queue", "");
    Write("worker.sbatch", "");
    options_.facts = {"hpc", coordinator_.address(), folder_ + "/worker.sbatch", folder_, {}, {}};
    options_.environment = {absl::StrCat("PATH=", folder_, "/bin:/usr/bin:/bin"), "SQUEUE_PARTITION=none"};
    options_.interval = absl::Milliseconds(10);
    options_.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options_.on_welcome = [this] { welcomed_.Notify(); };
  }
  void TearDown() override {
    site_.reset();
    fs::remove_all(folder_);
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(absl::StrCat(folder_, "/", name), std::ios::binary) << text;
  }
  // Makes a program of Slurm. It runs in the folder.
  void Program(const std::string& name, const std::string& script) const {
    Write("bin/" + name, absl::StrCat("#!/bin/sh\n", script, "\n"));
    fs::permissions(absl::StrCat(folder_, "/bin/", name), fs::perms::owner_all);
  }
  void Remove(const std::string& program) const { fs::remove(absl::StrCat(folder_, "/bin/", program)); }
  void Start() {
    absl::StatusOr<std::unique_ptr<SlurmSite>> site = SlurmSite::Start(options_);
    ASSERT_TRUE(site.ok()) << site.status();
    site_ = *std::move(site);
  }
  // Returns how many times sbatch was called.
  ptrdiff_t Submitted() const { return Lines("submitted"); }
  ptrdiff_t Lines(const std::string& name) const {
    std::ifstream file(absl::StrCat(folder_, "/", name));
    return std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n');
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/slurm_site", getpid());
  FakeCoordinator coordinator_;
  SlurmSiteOptions options_;
  absl::Notification welcomed_;
  std::unique_ptr<SlurmSite> site_;
};

// Groups that wait become batch jobs, and the coordinator hears of them.
TEST_F(SlurmSiteTest, GroupsThatWaitGetBatchJobs) {
  coordinator_.SetWaiting(2);
  Start();
  EXPECT_TRUE(coordinator_.WaitForNote("Slurm jobs 1, 2 wait: Priority"));
  EXPECT_EQ(Submitted(), 2);
}

// A batch job that ran a group is gone. The agent asks Slurm once how it ended, and the coordinator gets the answer.
// Then the next batch job waits in the queue.
TEST_F(SlurmSiteTest, TheCoordinatorHearsHowABatchJobEnded) {
  coordinator_.SetWaiting(1);
  Start();
  ASSERT_TRUE(coordinator_.WaitForNote("Slurm job 1 waits: Priority"));
  Write("new_queue", absl::StrCat("1|RUNNING|None|hooke hpc ", coordinator_.address(), " a-1 1\n"));
  fs::rename(folder_ + "/new_queue", folder_ + "/queue");
  coordinator_.SetWaiting(0, "1");
  ASSERT_TRUE(coordinator_.WaitForQuiet());
  Write("ends", "1|OUT_OF_MEMORY\n");
  Write("new_queue", "");
  fs::rename(folder_ + "/new_queue", folder_ + "/queue");
  EXPECT_TRUE(coordinator_.WaitForNote("Slurm job 1 ended: OUT_OF_MEMORY"));
  coordinator_.SetWaiting(1);
  EXPECT_TRUE(coordinator_.WaitForNote("Slurm job 1 ended: OUT_OF_MEMORY; Slurm job 2 waits: Priority"));
  EXPECT_EQ(Lines("asked"), 1);
}

// A batch job that Slurm has forgotten is told, too.
TEST_F(SlurmSiteTest, AnEndThatSlurmHasForgottenIsTold) {
  Program("squeue",
          "case \"$*\" in *--jobs=*) echo slurm_load_jobs error: Invalid job id specified; exit 1;; esac; cat queue");
  coordinator_.SetWaiting(1);
  Start();
  ASSERT_TRUE(coordinator_.WaitForNote("Slurm job 1 waits: Priority"));
  Write("new_queue", "");
  fs::rename(folder_ + "/new_queue", folder_ + "/queue");
  EXPECT_TRUE(coordinator_.WaitForNote("Slurm job 1 has ended before its workers came"));
}

// A message with bytes that are not UTF-8 would not reach the coordinator. The output here has such bytes, and its cut
// is inside a character. Of three groups only the first is tried.
TEST_F(SlurmSiteTest, OutputOfAnyBytesReachesTheCoordinator) {
  std::string text = "sbatch: \xfc ";
  for (int i = 0; i < 133; ++i) text += "\u20ac";
  Write("error", text + "!\xfc");
  Program("sbatch", "echo x >> submitted; cat error; exit 1");
  coordinator_.SetWaiting(3);
  Start();
  EXPECT_TRUE(coordinator_.WaitForNote("sbatch exited with status 1: \u20ac"));
  EXPECT_TRUE(coordinator_.WaitForNote("\u20ac!\\xfc; it is tried again"));
  EXPECT_EQ(Submitted(), 1);
}

// An agent without work leaves Slurm's controller alone, but for one look: batch jobs of an agent before it may be
// there.
TEST_F(SlurmSiteTest, AnIdleAgentDoesNotAskForTheQueue) {
  Program("squeue", "echo x >> looks; cat queue");
  Start();
  ASSERT_TRUE(coordinator_.WaitForCount(20));
  EXPECT_EQ(Lines("looks"), 1);
  coordinator_.SetWaiting(1);
  EXPECT_TRUE(coordinator_.WaitForNote("Slurm job 1 waits: Priority"));
  EXPECT_GE(Lines("looks"), 3);
}

// While squeue fails, the note of each waiting job says so, even if the job never had a batch job.
TEST_F(SlurmSiteTest, AQueueThatCannotBeReadIsNoted) {
  Program("squeue", "echo squeue: error: no controller; exit 1");
  coordinator_.SetWaiting(1);
  Start();
  EXPECT_TRUE(coordinator_.WaitForNote("squeue exited with status 1: squeue: error: no controller"));
  EXPECT_EQ(Submitted(), 0);
}

// A slow Slurm does not keep the agent from its heartbeats, without which it would lose its site.
TEST_F(SlurmSiteTest, ATurnHasALimit) {
  Program("sbatch", "echo x >> submitted; sleep 0.2; wc -l < submitted");
  options_.submit_limit = absl::Milliseconds(300);
  coordinator_.SetWaiting(16);
  Start();
  ASSERT_TRUE(coordinator_.WaitForCount(2));
  EXPECT_GE(Submitted(), 1);
  EXPECT_LT(Submitted(), 16) << "two in the first turn, and some of the second";
}

// If an agent starts soon after another one has ended, the coordinator refuses it at first. The agent asks again until
// it gets the site.
TEST_F(SlurmSiteTest, ASuccessorWaitsForTheSite) {
  coordinator_.Refuse(3);
  Start();
  EXPECT_TRUE(welcomed_.WaitForNotificationWithTimeout(kWait));
  EXPECT_TRUE(site_->Refusal().ok());
}

TEST_F(SlurmSiteTest, ASecondAgentGivesUp) {
  coordinator_.Refuse(1 << 30);
  options_.takeover_limit = absl::Milliseconds(50);
  Start();
  const absl::Time limit = absl::Now() + kWait;
  while (site_->Refusal().ok() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(site_->Refusal().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(welcomed_.HasBeenNotified());
}

TEST_F(SlurmSiteTest, BadOptionsAreRefused) {
  options_.facts.sbatch_flags = {"--array=0-3"};
  EXPECT_EQ(SlurmSite::Start(options_).status().code(), absl::StatusCode::kInvalidArgument);
  options_.facts.script = folder_ + "/none";
  EXPECT_EQ(SlurmSite::Start(options_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SlurmSiteTest, ProgramsOfSlurmMustBeThere) {
  options_.environment = {absl::StrCat("PATH=/nowhere:", folder_, "/bin")};
  Remove("scancel");
  EXPECT_EQ(SlurmSite::Start(options_).status().message(),
            "--slurm: there is no program scancel on the PATH: run this on a node from which jobs can be submitted");
}

}  // namespace
}  // namespace hooke
