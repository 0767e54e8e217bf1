// Tests how a store loads its centers from disk: at its start, in the background, and when a caller needs one. Other
// tests here show how it forgets them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_store.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using ParameterStoreLoadTest = TestStore;

// A center is on disk before the group learns that it is initialized. So a crash right after that loses nothing.
TEST_F(ParameterStoreLoadTest, InitializedCenterSurvivesACrash) {
  MakeCenter({});
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000001.snapshot"));
  Restart();
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
  EXPECT_EQ(store_->Attach(kNow, MakeAttachRequest({}, 1)).value().state(), v1::AttachResponse::READY);
}

// After a crash the center has the state of the last snapshot. A later exchange that its group sends again is applied
// again.
TEST_F(ParameterStoreLoadTest, RestartsFromTheLastSnapshot) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  Exchange("job-1", 32, 1);
  EXPECT_EQ(Read("job-1").value(), Moved(2));
  Restart();
  EXPECT_EQ(Read("job-1").value(), Moved(1));
  Exchange("job-1", 32, 1);
  EXPECT_EQ(Read("job-1").value(), Moved(2));
  EXPECT_EQ(store_->Find(SenderOf("job-1")).value()->updates(), 2u);
}

// A snapshot with a flipped bit is refused. The log names it, the byte, and the snapshot used instead. The next
// snapshots replace the damaged one and keep the good one.
TEST_F(ParameterStoreLoadTest, UsesThePreviousSnapshotWhenABitFlipped) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  storage_->FlipBit("job-1.000000000002.snapshot", 8 * (storage_->Get("job-1.000000000002.snapshot").size() - 10));
  Restart();
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
  EXPECT_THAT(log_.str(),
              HasSubstr("snapshot job-1.000000000002.snapshot in memory refused: checksum of block 2 at byte 237 is "));
  EXPECT_THAT(log_.str(), HasSubstr("its bytes have changed; the previous one, job-1.000000000001.snapshot, is tried"));
  Exchange("job-1", 16, 2);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000001.snapshot", "job-1.000000000003.snapshot"));
  Restart();
  EXPECT_EQ(Read("job-1").value(), Moved(2));
}

// A snapshot cut short is refused in the same way.
TEST_F(ParameterStoreLoadTest, UsesThePreviousSnapshotWhenCutShort) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  storage_->Truncate("job-1.000000000002.snapshot", 150);
  Restart();
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
  EXPECT_THAT(
      log_.str(),
      HasSubstr("snapshot job-1.000000000002.snapshot in memory refused: cut short or grown: 150 bytes instead of "));
}

// If both snapshots are damaged, the log says of the first that the previous one is tried, and of that one that there
// is no other.
TEST_F(ParameterStoreLoadTest, BothSnapshotsAreDamaged) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  storage_->Truncate("job-1.000000000001.snapshot", 100);
  storage_->Truncate("job-1.000000000002.snapshot", 150);
  Restart();
  EXPECT_EQ(Read("job-1").status().code(), absl::StatusCode::kDataLoss);
  const std::string log = log_.str();
  const size_t newer =
      log.find("snapshot job-1.000000000002.snapshot in memory refused: cut short or grown: 150 bytes");
  ASSERT_NE(newer, std::string::npos) << log;
  EXPECT_THAT(log.substr(newer), HasSubstr("; the previous one, job-1.000000000001.snapshot, is tried"));
  const size_t older =
      log.find("snapshot job-1.000000000001.snapshot in memory refused: cut short or grown: 100 bytes");
  ASSERT_NE(older, std::string::npos) << log;
  EXPECT_LT(newer, older);
  EXPECT_THAT(log.substr(older), HasSubstr("; there is no previous one"));
}

// If no snapshot of a job is readable, the job is lost, and its groups are told. The server and other jobs go on.
TEST_F(ParameterStoreLoadTest, LostJob) {
  MakeCenter({});
  TestCenter other;
  other.job_id = "job-2";
  MakeCenter(other);
  storage_->Truncate("job-1.000000000001.snapshot", 100);
  Restart();
  const absl::Status status = store_->Attach(kNow, MakeAttachRequest({})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no readable snapshot of job job-1 in memory (job-1.000000000001.snapshot: cut short or grown: "
                        "100 bytes instead of"));
  EXPECT_EQ(Read("job-1").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read("job-2").value(), Ramp(0, 10));
  EXPECT_TRUE(store_->Seal("job-1").ok());
}

// If a stored center no longer fits, because the limit was lowered, the server still starts. Calls for its job return
// an error that says what to do, and the other jobs are loaded. Once there is room, the center is loaded unchanged.
TEST_F(ParameterStoreLoadTest, AStoredCenterThatDoesNotFit) {
  TestCenter large;
  large.job_id = "job-0";
  large.values = 40;
  MakeCenter(large);
  const uint64_t large_bytes = store_->center_bytes();
  MakeCenter({});
  ParameterStoreOptions options = Options();
  options.max_center_bytes = large_bytes / 4 * 3;
  store_ = ParameterStore::Open(options).value();
  EXPECT_THAT(store_->jobs(), ElementsAre("job-1"));
  EXPECT_EQ(store_->disk_use().centers, 1u) << "the one that was not loaded";
  const absl::Status status = store_->Attach(kNow, MakeAttachRequest(large)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << "groups that are refused for good would end the job";
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("the center of job job-0 is kept on this server's disk, but there is no room to load it: the "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("raise --max-center-bytes or add servers; then start the "));
  EXPECT_THAT(log_.str(), HasSubstr("the center of job job-0 is kept on this server's disk, but there is no room"));
  EXPECT_EQ(store_->Find(SenderOf("job-0")).status(), status);
  EXPECT_EQ(store_->Save(SenderOf("job-0")), status);
  EXPECT_TRUE(store_->Attach(kNow, MakeAttachRequest({}, 0, 2)).ok());
  EXPECT_TRUE(store_->SnapshotChanged().ok());
  Restart();
  EXPECT_THAT(store_->jobs(), ElementsAre("job-0", "job-1"));
  EXPECT_EQ(Read("job-0").value(), Ramp(0, 40));
}

// A server with 1,000 finished jobs starts without reading their values. It reads a few hundred bytes of each job. The
// values are read when somebody asks for them, and LoadRest verifies them.
TEST_F(ParameterStoreLoadTest, StartsWithoutReadingValues) {
  constexpr int kJobs = 1000;
  constexpr uint64_t kValueBytes = 4000;
  ParameterStoreOptions options = Options();
  options.max_center_bytes = 1 << 20;
  options.block_values = 1000;
  store_ = ParameterStore::Open(options).value();
  TestCenter center;
  center.values = kValueBytes / 4;
  for (int job = 0; job < kJobs; ++job) {
    center.job_id = absl::StrCat("job-", job);
    MakeCenter(center);
    // The first job is not sealed and goes on running.
    ASSERT_TRUE(store_->Seal(job > 0 ? center.job_id : "none").ok());
  }
  const uint64_t before = storage_->bytes_read();
  store_ = ParameterStore::Open(options).value();
  EXPECT_LT(storage_->bytes_read() - before, kJobs * 300);
  EXPECT_THAT(store_->jobs(), ElementsAre("job-0")) << "the one that runs";
  EXPECT_EQ(store_->disk_use().centers, kJobs - 1);
  EXPECT_EQ(store_->disk_use().jobs.size(), kJobs - 1u);
  EXPECT_GT(store_->center_bytes(), kValueBytes) << "reserved, so that no new job takes it";
  EXPECT_EQ(Read("job-0").value(), Ramp(0, kValueBytes / 4));
  EXPECT_EQ(Read("job-7").value(), Ramp(0, kValueBytes / 4));
  store_->LoadRest();
  EXPECT_GT(storage_->bytes_read() - before, kJobs * kValueBytes);
}

// A running job's snapshot may have an intact header and damaged values. The start does not read the values. Loading
// them finds the damage, and uses the previous snapshot.
TEST_F(ParameterStoreLoadTest, LoadsInTheBackground) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  storage_->FlipBit("job-1.000000000002.snapshot", 8 * (storage_->Get("job-1.000000000002.snapshot").size() - 10));
  Restart();
  EXPECT_THAT(log_.str(), Not(HasSubstr("refused")));
  EXPECT_TRUE(store_->SnapshotChanged().ok()) << "there is nothing to write";
  store_->LoadRest();
  EXPECT_THAT(log_.str(), HasSubstr("snapshot job-1.000000000002.snapshot in memory refused: checksum of block 2 at "));
  EXPECT_THAT(log_.str(), HasSubstr("job job-1: shard 0 of 1 loaded from its snapshot"));
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
}

// Damage in a finished center is found and logged in the background. The previous snapshot is used instead. If there is
// none, the job is lost, and its calls return an error that says so.
TEST_F(ParameterStoreLoadTest, VerifiesFinishedCentersInTheBackground) {
  for (const char* job_id : {"job-1", "job-2"}) {
    TestCenter center;
    center.job_id = job_id;
    MakeCenter(center);
    ASSERT_TRUE(store_->Seal(job_id).ok());
    const std::string name = absl::StrCat(job_id, ".000000000002.snapshot");
    storage_->FlipBit(name, 8 * (storage_->Get(name).size() - 10));
  }
  ASSERT_TRUE(storage_->Remove("job-2.000000000001.snapshot").ok());
  Restart();
  EXPECT_THAT(log_.str(), Not(HasSubstr("refused")));
  store_->LoadRest();
  EXPECT_THAT(log_.str(), HasSubstr("job-1.000000000002.snapshot in memory refused"));
  EXPECT_THAT(log_.str(), HasSubstr("no readable snapshot of job job-2 in memory (job-2.000000000002.snapshot: "));
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
  EXPECT_EQ(store_->Attach(kNow, MakeAttachRequest({})).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Read("job-2").status().code(), absl::StatusCode::kDataLoss);
}

// When the server stops, LoadRest begins no further shard.
TEST_F(ParameterStoreLoadTest, LoadRestEndsWhenTheServerStops) {
  MakeCenter({});
  ASSERT_TRUE(store_->Seal("job-1").ok());
  Restart();
  store_->StopWaiting();
  const uint64_t before = storage_->bytes_read();
  store_->LoadRest();
  EXPECT_EQ(storage_->bytes_read(), before);
}

// Threads that ask for a shard wait while another thread loads it. All of them get the shard, and it is read once.
TEST_F(ParameterStoreLoadTest, ManyAskForAShardThatIsBeingLoaded) {
  MakeCenter({});
  for (int round = 0; round < 20; ++round) {
    Restart();
    const uint64_t before = storage_->bytes_read();
    std::vector<std::thread> threads;
    threads.emplace_back([this]() { store_->LoadRest(); });
    for (uint32_t group = 0; group < 2; ++group) {
      threads.emplace_back([this, group, round]() {
        EXPECT_EQ(store_->Attach(kNow, MakeAttachRequest({}, group, round + 2)).value().state(),
                  v1::AttachResponse::READY);
        EXPECT_TRUE(store_->Find(SenderOf("job-1")).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(storage_->bytes_read() - before, 3 * storage_->Get("job-1.000000000001.snapshot").size());
  }
}

// A forgotten job's shard is gone, from memory and disk, and its memory is free. That holds for a job that runs here,
// one that is not loaded yet and one that is sealed. To forget a job that this server does not hold changes nothing and
// is OK.
TEST_F(ParameterStoreLoadTest, ForgetsAJob) {
  const std::string key = MakeAttachRequest({}).job().job_key();
  for (const char* state : {"in memory", "not loaded", "sealed", "sealed before a restart"}) {
    MakeCenter({});
    const auto shard = store_->Find(SenderOf("job-1")).value();
    EXPECT_TRUE(store_->Seal(absl::StartsWith(state, "sealed") ? "job-1" : "none").ok());
    if (std::string(state) == "not loaded" || absl::StrContains(state, "restart")) Restart();
    EXPECT_TRUE(store_->Forget("job-1", key).ok()) << state;
    EXPECT_THAT(storage_->List().value(), IsEmpty()) << state;
    EXPECT_THAT(store_->jobs(), IsEmpty());
    EXPECT_EQ(store_->center_bytes(), 0u) << state;
    EXPECT_EQ(store_->disk_use().bytes, 0u);
    EXPECT_EQ(Read("job-1").status().code(), absl::StatusCode::kNotFound) << state;
    std::vector<float> answer(4);
    if (std::string(state) == "in memory") {
      EXPECT_EQ(shard->ApplyBlock({{}, 32, 0}, Ramp(0, 4), absl::MakeSpan(answer)).code(),
                absl::StatusCode::kFailedPrecondition)
          << "a stream that was open before";
    }
    EXPECT_TRUE(store_->Forget("job-1", key).ok());
  }
}

// A shard with another key than the forgotten job's belongs to another job and stays. A shard whose snapshots are all
// damaged stays too, because its key cannot be read.
TEST_F(ParameterStoreLoadTest, FreesNoOtherJobsShard) {
  const std::string key = MakeAttachRequest({}).job().job_key();
  MakeCenter({});
  for (int round = 0; round < 3; ++round) {
    const absl::Status status = store_->Forget("job-1", "another key");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("are of another job with that id, or damaged: they stay"));
    EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
    const std::string sealed = round == 0 ? "job-1" : "none";
    EXPECT_TRUE(store_->Seal(sealed).ok());
    if (round == 1) Restart();
  }
  const std::vector<std::string> names = storage_->List().value();
  for (const std::string& name : names) storage_->Truncate(name, 100);
  Restart();
  EXPECT_EQ(store_->Forget("job-1", key).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(storage_->List().value(), names);
}

}  // namespace
}  // namespace hooke
