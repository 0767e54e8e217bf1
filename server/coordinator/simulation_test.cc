// Many small clusters in virtual time, each from a seed. Workers die, hang, lose their streams and come back. The
// coordinator dies and is started again, its disk fails, and its clock is set. Events arrive twice. Users scale jobs
// and drain workers. The invariants hold after every moment. Once the faults stop, every job ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "clocks/instant.h"
#include "job/job_state.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/fake_server.h"
#include "server/coordinator/fake_worker.h"
#include "server/journal/job_log.h"
#include "server/records/record_store.h"
#include "server/records/records.h"

namespace hooke {
namespace {

// How many schedules run. A schedule is the run of one seed. BUILD gives fewer to builds with clang, such as that of
// the address sanitizer, which are slow.
#ifdef HOOKE_SCHEDULES
constexpr size_t kSchedules = HOOKE_SCHEDULES;
#else
constexpr size_t kSchedules = 150;
#endif

constexpr absl::Duration kMoment = absl::Milliseconds(250);
constexpr int kStormMoments = 400;
constexpr absl::Duration kPause = absl::Seconds(4);  // Between two changes of a number of groups.
constexpr int kCalmMoments = 4000;

class Cluster {
 public:
  Cluster(uint64_t seed, const std::string& folder) : random_(seed), folder_(folder) {
    workers_.emplace_back("w1", 2);
    workers_.emplace_back("w2", 3);
    workers_.emplace_back("w3", 4, "cloud");
    hung_.resize(workers_.size());
    StartCoordinator();
  }

  void Storm() {
    for (int i = 0; i < kStormMoments; ++i) Moment(true);
  }

  // Lets time pass without further faults. False: some job did not end.
  bool Calm() {
    store_->FailWith(absl::OkStatus());
    hung_.assign(workers_.size(), false);
    for (int i = 0; i < kCalmMoments; ++i) {
      Moment(false);
      ResumeAll();
      if (AllEnded()) return true;
    }
    return false;
  }

  const std::set<std::string>& acknowledged() const { return acknowledged_; }
  // How many generations the coordinator has begun by itself, without a user's request.
  size_t resizes() const { return resizes_; }

 private:
  bool Chance(double probability) { return std::uniform_real_distribution<double>(0, 1)(random_) < probability; }
  uint32_t Pick(uint32_t most) { return std::uniform_int_distribution<uint32_t>(1, most)(random_); }

  void StartCoordinator() {
    CoordinatorOptions options;
    options.store = store_;
    options.cluster.compare_kept = true;
    options.cluster.resize = {absl::Seconds(1), kPause};
    options.writer = CoordinatorOptions::Writer::kCaller;
    options.log = std::make_shared<JobLog>(*JobLog::Open({folder_}));
    options.logger = std::make_shared<spdlog::logger>("simulation", std::make_shared<spdlog::sinks::null_sink_mt>());
    coordinator_ = *Coordinator::Create(std::move(options), now_);
    coordinator_->SetOwnServer(FakeServer("s:1").server_id());
  }

  // A user lets held groups go on.
  void ResumeAll() {
    for (const v1::JobStatus& job : coordinator_->List(SIZE_MAX, now_).jobs) {
      if (HasEnded(job.state())) continue;
      (void)coordinator_->Resume(job.job_id(), now_);  // The store may not have recovered yet.
    }
  }

  void Moment(bool storm) {
    now_ += kMoment;
    if (storm) Trouble();
    if (coordinator_ == nullptr && (!storm || Chance(0.05))) StartCoordinator();
    if (coordinator_ != nullptr) {
      if (!storm || Chance(0.8)) {
        ASSERT_TRUE(FakeHeartbeat(*coordinator_, "s:1", now_).ok());
      }
      AnswerDials(*coordinator_, now_);
      if (storm) Users();
      if (!storm) DrainAll(v1::DRAIN_NONE);
      coordinator_->Tick(now_);
    }
    for (size_t i = 0; i < workers_.size(); ++i) Work(workers_[i], hung_[i], storm);
    Check();
  }

  void Trouble() {
    if (Chance(0.02)) now_.wall += absl::Minutes(120 * (Chance(0.5) ? 1 : -1));  // Somebody sets the clock.
    if (coordinator_ != nullptr && Chance(0.01)) {
      for (FakeWorker& worker : workers_) worker.Disconnect(now_);
      coordinator_.reset();
    }
    if (Chance(0.02)) store_->FailWith(absl::InternalError("broken disk"));
    if (Chance(0.2)) store_->FailWith(absl::OkStatus());
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (Chance(0.01)) workers_[i].Crash(now_);
      if (Chance(0.02)) workers_[i].Disconnect(now_);
      if (Chance(0.01)) hung_[i] = true;
      if (Chance(0.03)) hung_[i] = false;
      if (!hung_[i] && Chance(0.1)) workers_[i].Repeat(now_);
    }
  }

  void Users() {
    if (Chance(0.03)) {
      v1::SubmitRequest request = ExampleSubmission(absl::StrCat("s", Pick(12)), {Pick(3), Pick(4)});
      request.mutable_job()->set_priority(Pick(3));
      if (Chance(0.5)) {
        v1::GroupsSpec& groups = *request.mutable_job()->mutable_groups();
        groups.set_min(Pick(groups.count()));
        groups.set_max(groups.count() + Pick(3) - 1);
      }
      const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
      if (id.ok()) acknowledged_.insert(*id);
    }
    if (Chance(0.005)) (void)coordinator_->Resume(absl::StrCat("fashion-", Pick(8)), now_);
    if (!acknowledged_.empty() && Chance(0.005)) (void)coordinator_->Cancel(*acknowledged_.begin(), now_);
    if (!acknowledged_.empty() && Chance(0.02)) {
      v1::ScaleJobRequest scale;
      scale.set_job_id(*std::next(acknowledged_.begin(), Pick(acknowledged_.size()) - 1));
      scale.set_groups(Pick(3));
      (void)coordinator_->Scale(scale, now_);
      // The change may be in effect although Scale has failed, because the store has failed.
      if (const auto job = coordinator_->Status(scale.job_id(), now_); job.ok()) {
        generations_[scale.job_id()].of_user = job->generation() + 1;
      }
    }
    if (Chance(0.01)) DrainAll(Chance(0.5) ? v1::DRAIN_NOW : Chance(0.5) ? v1::DRAIN_FINISH : v1::DRAIN_NONE);
  }

  // Drains some of the workers, or takes the drain of all back.
  void DrainAll(v1::Drain drain) {
    for (const char* name : {"w1", "w2", "w3"}) {
      if (drain == v1::DRAIN_NONE || Chance(0.4)) (void)coordinator_->Drain(name, drain, now_);
    }
  }

  void Work(FakeWorker& worker, bool hung, bool storm) {
    if (hung) return;
    if (!worker.connected() && coordinator_ != nullptr && (!storm || Chance(0.1)))
      (void)worker.Connect(*coordinator_, now_);
    worker.Heartbeat(now_);
    worker.Receive(now_, /*linger=*/storm && Chance(0.5));
    std::vector<GroupKey> running;
    for (const auto& [key, run] : worker.running()) running.push_back(key);
    for (const GroupKey& key : running) {
      const FakeWorker::Run& run = worker.running().at(key);
      if (run.stopping) continue;
      const bool evaluation = run.start.group().task() == v1::GroupStart::EVALUATE;
      if (Chance(0.3)) worker.Progress(key, run.step + 1, now_);
      if (storm && Chance(0.02)) {
        worker.End(key, absl::AbortedError("a rank died"), now_);
      } else if (Chance(storm ? 0.01 : 0.1)) {
        if (evaluation) worker.Evaluated(key, 0.9, now_);
        worker.End(key, absl::OkStatus(), now_);
      }
    }
  }

  void Check() {
    // A welcomed worker also knows which groups to stop: the stops come together with the welcome.
    std::map<std::pair<std::string, uint32_t>, int> live;
    for (size_t i = 0; i < workers_.size(); ++i) {
      FakeWorker& worker = workers_[i];
      ASSERT_LE(worker.slots_used(), worker.slots()) << "slots are oversubscribed";
      if (!worker.welcomed() || hung_[i]) continue;
      for (const auto& [key, run] : worker.running()) {
        if (!run.stopping) ++live[{key.job_id, key.group}];
      }
    }
    for (const auto& [group, count] : live)
      ASSERT_LE(count, 1) << group.first << " group " << group.second << " runs twice";
    std::set<GroupKey> started;
    for (const FakeWorker& worker : workers_) {
      for (const GroupKey& key : worker.started()) {
        ASSERT_TRUE(started.insert(key).second)
            << key.job_id << " group " << key.group << " incarnation " << key.incarnation << " was started twice";
      }
    }
    if (coordinator_ == nullptr) return;
    for (const std::string& id : acknowledged_) ASSERT_TRUE(coordinator_->Status(id, now_).ok()) << id << " is lost";
    for (const std::string& id : acknowledged_) CheckGroups(*coordinator_->Status(id, now_));
  }

  // The number of groups stays within its limits, and does not change too often by itself.
  void CheckGroups(const v1::JobStatus& job) {
    const v1::GroupsSpec& groups = job.spec().groups();
    if (groups.max() > 0) {
      ASSERT_GE(groups.count(), groups.min()) << job.job_id();
      ASSERT_LE(groups.count(), groups.max()) << job.job_id();
    }
    LastGeneration& last = generations_[job.job_id()];
    if (job.generation() == last.number) return;
    // A generation that was not stored is forgotten when the coordinator dies.
    if (last.number > 0 && job.generation() > last.number && job.generation() != last.of_user) {
      if (last.number > 1) {
        ASSERT_GE(now_.steady - last.at, kPause)
            << job.job_id() << " generation " << job.generation() << "\n"
            << coordinator_->ReadLog(job.job_id(), 0, 1 << 20).value_or(LogText()).text;
      }
      ++resizes_;
    }
    last.number = job.generation();
    last.at = now_.steady;
  }

  bool AllEnded() {
    for (const v1::JobStatus& job : coordinator_->List(SIZE_MAX, now_).jobs) {
      if (!HasEnded(job.state())) return false;
    }
    for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) {
      if (node.slots_used() > 0) return false;
    }
    for (const FakeWorker& worker : workers_) {
      if (!worker.running().empty() || worker.unseen() > 0) return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  const std::string folder_;
  Instant now_ = {absl::FromUnixSeconds(1000000), absl::ZeroDuration()};
  std::shared_ptr<InMemoryRecordStore> store_ = std::make_shared<InMemoryRecordStore>();
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<FakeWorker> workers_;
  std::vector<bool> hung_;
  std::set<std::string> acknowledged_;

  struct LastGeneration {
    uint32_t number = 0;
    absl::Duration at;     // The virtual time at which the test first saw this generation.
    uint32_t of_user = 0;  // The generation that follows the last change by a user; 0: there was none.
  };
  std::map<std::string, LastGeneration> generations_;  // By job.
  size_t resizes_ = 0;
};

// In every schedule, no group has two live incarnations, no slot has two ranks, and no incarnation starts twice. No
// acknowledged job is lost. If a job has min and max, its number of groups stays within them. The coordinator does not
// change it by itself within kPause of the last change. In the end every job has ended and every slot is free.
TEST(SimulationTest, HoldsItsInvariantsInEverySchedule) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/simulation");
  size_t jobs = 0, resizes = 0;
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::filesystem::remove_all(folder);
    Cluster cluster(seed, folder);
    cluster.Storm();
    EXPECT_TRUE(cluster.Calm()) << "not every job ended";
    jobs += cluster.acknowledged().size();
    resizes += cluster.resizes();
    if (testing::Test::HasFailure()) break;
  }
  std::filesystem::remove_all(folder);
  EXPECT_GT(jobs, 3 * kSchedules);
  EXPECT_GT(resizes, kSchedules / 3);
}

}  // namespace
}  // namespace hooke
