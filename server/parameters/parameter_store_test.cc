#include "server/parameters/parameter_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job.pb.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/snapshot_history.h"
#include "server/parameters/test_center.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOOKE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOOKE_SANITIZED 1
#endif
#endif
#ifndef HOOKE_SANITIZED
#define HOOKE_SANITIZED 0
#endif

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const absl::Time kNow = absl::UnixEpoch();

class ParameterStoreTest : public ::testing::Test {
 protected:
  ParameterStoreTest() { Restart(); }

  // Acts like a crash: memory is lost, storage stays.
  void Restart() { store_ = ParameterStore::Open(Options()).value(); }

  ParameterStoreOptions Options() {
    ParameterStoreOptions options;
    options.storage = storage_;
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
    options.max_center_bytes = 10000;
    options.block_values = 4;
    return options;
  }

  void MakeCenter(const TestCenter& center) {
    ASSERT_EQ(store_->Attach(kNow, MakeAttachRequest(center)).value().state(), v1::AttachResponse::INITIALIZE);
    WriteValues(center);
    ASSERT_TRUE(store_->FinishInitialize(center.job_id, {}).ok());
  }

  void WriteValues(const TestCenter& center) {
    const auto shard = store_->Find(MakeSender(center)).value();
    for (uint64_t block = 0; block < shard->blocks(); ++block) {
      const Range range = shard->BlockRange(block);
      ASSERT_TRUE(shard->WriteInitial(kNow, {}, range.begin, Ramp(range.begin, range.size())).ok());
    }
  }

  // Moves the first block by `by`.
  void Exchange(const std::string& job_id, uint64_t sequence, float by) {
    const auto shard = store_->Find(SenderOf(job_id)).value();
    std::vector<float> x = shard->CopyBlock(0).values;
    for (float& value : x) value += 4 * by;
    std::vector<float> answer(x.size());
    ASSERT_TRUE(shard->ApplyBlock({{}, sequence, 0}, x, absl::MakeSpan(answer)).ok());
  }

  absl::StatusOr<std::vector<float>> Read(const std::string& job_id) {
    std::vector<float> all;
    const auto header = [](const ParameterStore::CenterHeader&) { return absl::OkStatus(); };
    const auto block = [&all](uint64_t first, absl::Span<const float> values) {
      EXPECT_EQ(first, all.size());
      all.insert(all.end(), values.begin(), values.end());
      return absl::OkStatus();
    };
    const absl::Status status = store_->ReadCenter(job_id, {header, block});
    if (!status.ok()) return status;
    return all;
  }

  std::vector<float> Moved(float by) {
    std::vector<float> values = Ramp(0, 10);
    for (int i = 0; i < 4; ++i) values[i] += by;
    return values;
  }

  std::ostringstream log_;
  const std::shared_ptr<InMemoryStorage> storage_ = std::make_shared<InMemoryStorage>();
  std::unique_ptr<ParameterStore> store_;
};

// A center is on disk before the group hears that it is initialized: a crash right after loses nothing.
TEST_F(ParameterStoreTest, InitializedCenterSurvivesACrash) {
  MakeCenter({});
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000001.snapshot"));
  Restart();
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
  EXPECT_EQ(store_->Attach(kNow, MakeAttachRequest({}, 1)).value().state(), v1::AttachResponse::READY);
}

// After a crash everything is as the last snapshot says. What the groups did since then is applied anew.
TEST_F(ParameterStoreTest, RestartsFromTheLastSnapshot) {
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

// Only what changed is written, and two versions are kept.
TEST_F(ParameterStoreTest, WritesChangedShardsOnly) {
  MakeCenter({});
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000001.snapshot"));
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    Exchange("job-1", sequence, 1);
    ASSERT_TRUE(store_->SnapshotChanged().ok());
  }
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000003.snapshot", "job-1.000000000004.snapshot"));
  Restart();
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000003.snapshot", "job-1.000000000004.snapshot"));
}

// A snapshot with a flipped bit is refused: the log names it, the byte and the one used instead; the next snapshots
// replace it and keep the good one.
TEST_F(ParameterStoreTest, UsesThePreviousSnapshotWhenABitFlipped) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  storage_->FlipBit("job-1.000000000002.snapshot", 8 * (storage_->Get("job-1.000000000002.snapshot").size() - 10));
  Restart();
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
  EXPECT_THAT(log_.str(),
              HasSubstr("snapshot job-1.000000000002.snapshot in memory refused: checksum of block 2 at byte 221 is "));
  EXPECT_THAT(log_.str(), HasSubstr("its bytes have changed; the previous one, job-1.000000000001.snapshot, is tried"));
  Exchange("job-1", 16, 2);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000001.snapshot", "job-1.000000000003.snapshot"));
  Restart();
  EXPECT_EQ(Read("job-1").value(), Moved(2));
}

// A server with 1,000 finished jobs starts without reading their values: it reads a few hundred bytes of each. Their
// values are read when somebody asks for them, and verified by LoadRest.
TEST_F(ParameterStoreTest, StartsWithoutReadingValues) {
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
    // The first one goes on.
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

// A running job's shard whose header is intact but whose values are not is found damaged when it is loaded: the
// snapshot before is used, as at a start.
TEST_F(ParameterStoreTest, LoadsInTheBackground) {
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

// Damage in a finished center is found and logged in the background. The snapshot before serves; without one the job is
// lost, and is told so.
TEST_F(ParameterStoreTest, VerifiesFinishedCentersInTheBackground) {
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

// LoadRest ends soon when the server stops: it begins no further shard.
TEST_F(ParameterStoreTest, LoadRestEndsWhenTheServerStops) {
  MakeCenter({});
  ASSERT_TRUE(store_->Seal("job-1").ok());
  Restart();
  store_->StopWaiting();
  const uint64_t before = storage_->bytes_read();
  store_->LoadRest();
  EXPECT_EQ(storage_->bytes_read(), before);
}

// Whoever asks for a shard that another thread is loading waits for it: all of them get it, and it is read once.
TEST_F(ParameterStoreTest, ManyAskForAShardThatIsBeingLoaded) {
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

// A snapshot cut short is refused in the same way.
TEST_F(ParameterStoreTest, UsesThePreviousSnapshotWhenCutShort) {
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

// If no snapshot of a job is readable, the job is lost, and its groups are told. The server and other jobs go on.
TEST_F(ParameterStoreTest, LostJob) {
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

// A center larger than this server takes is refused with the numbers, before memory is taken. The job is not
// remembered.
TEST_F(ParameterStoreTest, LimitsMemory) {
  TestCenter large;
  large.values = uint64_t{1} << 59;
  const absl::Status status = store_->Attach(kNow, MakeAttachRequest(large)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the shard of job job-1 needs "));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(" bytes; 10000 of this server's 10000 are free; raise --max-center-bytes or add servers"));
  EXPECT_EQ(store_->center_bytes(), 0u);
  EXPECT_EQ(Read("job-1").status().code(), absl::StatusCode::kNotFound);

  MakeCenter({});
  EXPECT_GT(store_->center_bytes(), 40u);
}

// A stored center that no longer fits, because the limit was lowered, does not keep the server from starting. Its job
// is told what to do, and the others are loaded. With room it is back as it was.
TEST_F(ParameterStoreTest, AStoredCenterThatDoesNotFit) {
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

// The bytes on disk are counted: the snapshots of a center in memory, and those of a sealed one, which also counts as a
// center. A restart finds the same. Files that were replaced do not count.
TEST_F(ParameterStoreTest, DiskUse) {
  const auto stored_bytes = [this] {
    uint64_t bytes = 0;
    const std::vector<std::string> names = storage_->List().value();
    for (const std::string& name : names) bytes += storage_->Open(name).value()->size();
    return bytes;
  };
  EXPECT_EQ(store_->disk_use().centers, 0u);
  EXPECT_EQ(store_->disk_use().bytes, 0u);
  MakeCenter({});
  EXPECT_EQ(store_->disk_use().centers, 0u);
  EXPECT_GT(store_->disk_use().bytes, 40u);
  EXPECT_EQ(store_->disk_use().bytes, stored_bytes());
  for (const uint64_t sequence : {16, 32, 48}) {
    Exchange("job-1", sequence, 1);
    ASSERT_TRUE(store_->SnapshotChanged().ok());
    EXPECT_EQ(store_->disk_use().bytes, stored_bytes());
  }
  ASSERT_TRUE(store_->Seal("job-1").ok());
  const ParameterStore::DiskUse sealed = store_->disk_use();
  EXPECT_EQ(sealed.centers, 1u);
  EXPECT_EQ(sealed.bytes, stored_bytes());
  EXPECT_EQ(store_->center_bytes(), 0u);
  Restart();
  EXPECT_EQ(store_->disk_use().centers, 1u);
  EXPECT_EQ(store_->disk_use().bytes, sealed.bytes);
}

// A full disk fails the snapshot, not the exchanges. The snapshot before stays, and when there is room again the next
// one succeeds.
TEST_F(ParameterStoreTest, FullDisk) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  storage_->SetFreeBytes(100);
  const absl::Status status = store_->SnapshotChanged();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left on device; free some space there"));
  Exchange("job-1", 32, 1);
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000001.snapshot"));
  storage_->SetFreeBytes(100000);
  ASSERT_TRUE(store_->SnapshotChanged().ok());
  Restart();
  EXPECT_EQ(Read("job-1").value(), Moved(2));
}

// Initialize is not acknowledged while the disk fails. When it is repeated, it writes the snapshot.
TEST_F(ParameterStoreTest, InitializeNeedsTheDisk) {
  ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({})).ok());
  WriteValues({});
  storage_->FailCommits(absl::UnavailableError("broken"));
  EXPECT_EQ(store_->FinishInitialize("job-1", {}).message(), "broken");
  storage_->FailCommits(absl::OkStatus());
  EXPECT_TRUE(store_->FinishInitialize("job-1", {}).ok());
  EXPECT_EQ(storage_->List().value().size(), 1u);
}

// No group is told that it is ready while nothing of an initialized center is on disk. The group's next incarnation is
// refused until there is room.
TEST_F(ParameterStoreTest, ReadyNeedsASnapshot) {
  ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({})).ok());
  WriteValues({});
  storage_->SetFreeBytes(0);
  EXPECT_EQ(store_->FinishInitialize("job-1", {}).code(), absl::StatusCode::kResourceExhausted);
  const absl::Status refused = store_->Attach(kNow, MakeAttachRequest({}, 0, 2)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("free some space there"));
  storage_->SetFreeBytes(100000);
  EXPECT_EQ(store_->Attach(kNow, MakeAttachRequest({}, 0, 2)).value().state(), v1::AttachResponse::READY);
  Restart();
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
}

// After Save every answered exchange is on disk. Nothing is written twice, and the disk's error is passed on.
TEST_F(ParameterStoreTest, Saves) {
  EXPECT_EQ(store_->Save(SenderOf("job-1")).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({})).ok());
  EXPECT_EQ(store_->Save(SenderOf("job-1")).code(), absl::StatusCode::kNotFound) << "no values yet";
  MakeCenter({});
  Exchange("job-1", 16, 1);
  storage_->SetFreeBytes(0);
  EXPECT_EQ(store_->Save(SenderOf("job-1")).code(), absl::StatusCode::kResourceExhausted);
  storage_->SetFreeBytes(100000);
  EXPECT_TRUE(store_->Save(SenderOf("job-1")).ok());
  EXPECT_TRUE(store_->Save(SenderOf("job-1")).ok());
  EXPECT_EQ(storage_->List().value().size(), 2u);
  Restart();
  EXPECT_EQ(Read("job-1").value(), Moved(1));
  ASSERT_TRUE(store_->Seal("job-1").ok());
  EXPECT_TRUE(store_->Save(SenderOf("job-1")).ok());
  const std::vector<std::string> names = storage_->List().value();
  for (const std::string& name : names) storage_->Truncate(name, 100);
  Restart();
  EXPECT_EQ(store_->Save(SenderOf("job-1")).code(), absl::StatusCode::kDataLoss);
}

// A job with the id of an earlier one does not get that one's center. It does not matter whether the earlier one still
// trains or has ended, or whether the server restarted.
TEST_F(ParameterStoreTest, TellsJobsOfOneIdApart) {
  const v1::AttachRequest first = MakeAttachRequest({});
  v1::AttachRequest second = MakeAttachRequest({});
  second.mutable_job()->set_job_key("second");
  MakeCenter({});
  for (int round = 0; round < 4; ++round) {
    const absl::Status status = store_->Attach(kNow, second).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("another job had the id job-1 here"));
    if (round < 2) {
      EXPECT_TRUE(store_->Attach(kNow, first).ok());
    } else {
      EXPECT_EQ(store_->Attach(kNow, first).status().message(), "job job-1 has ended; its center can only be pulled");
    }
    if (round == 1) {
      EXPECT_TRUE(store_->Seal("job-1").ok());
    } else {
      Restart();
    }
  }
}

// In a shard that is made after the server began to stop, nobody waits for other groups, either.
TEST_F(ParameterStoreTest, AShardMadeWhileStopping) {
  store_->StopWaiting();
  v1::AttachRequest request = MakeStepRequest({}, v1::AveragingSpec::SYNC, 0.5);
  request.mutable_job()->set_quorum(2);
  ASSERT_TRUE(store_->Attach(kNow, request).ok());
  WriteValues({});
  ASSERT_TRUE(store_->FinishInitialize("job-1", {}).ok());
  std::vector<float> answer(4);
  const absl::Status status =
      store_->Find(SenderOf("job-1")).value()->ApplyBlock({{}, 1, 0}, Ramp(0, 4), absl::MakeSpan(answer));
  EXPECT_EQ(status, absl::UnavailableError("this parameter server is stopping; try again"));
}

// A group that asks again and again is logged only when its answer changes.
TEST_F(ParameterStoreTest, LogsChangedAnswersOnly) {
  const auto lines = [this]() {
    const std::string log = log_.str();
    return std::count(log.begin(), log.end(), '\n');
  };
  ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({})).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({}, 1)).ok());
  EXPECT_EQ(lines(), 2);
  WriteValues({});
  ASSERT_TRUE(store_->FinishInitialize("job-1", {}).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({}, 1)).ok());
  EXPECT_EQ(lines(), 3);
  ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({}, 1, 2)).ok());
  EXPECT_EQ(lines(), 4) << "another incarnation";
}

// A center that is allowed but larger than the machine's memory is refused, again and again. Nothing stays reserved.
TEST_F(ParameterStoreTest, MachineWithoutMemory) {
#if HOOKE_SANITIZED
  GTEST_SKIP() << "a sanitizer ends the process instead of letting an allocation fail";
#endif
  ParameterStoreOptions options = Options();
  options.max_center_bytes = uint64_t{1} << 62;
  store_ = ParameterStore::Open(options).value();
  TestCenter large;
  large.values = uint64_t{1} << 55;
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = store_->Attach(kNow, MakeAttachRequest(large)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("machine has no memory for the shard of job job-1"));
    EXPECT_EQ(store_->center_bytes(), 0u);
  }
  MakeCenter({});
}

// A sealed job takes no memory and no exchanges, but its center is read from its last snapshot, also after a restart.
TEST_F(ParameterStoreTest, SealsAJobThatEnded) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  const auto shard = store_->Find(SenderOf("job-1")).value();
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_TRUE(store_->Seal("job-1").ok());
    EXPECT_EQ(store_->center_bytes(), 0u);
    EXPECT_THAT(store_->jobs(), IsEmpty());
    EXPECT_EQ(Read("job-1").value(), Moved(1));
    const absl::Status status = store_->Attach(kNow, MakeAttachRequest({})).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), "job job-1 has ended; its center can only be pulled");
    EXPECT_EQ(store_->Find(SenderOf("job-1")).status().code(), absl::StatusCode::kFailedPrecondition);
    Restart();
  }
  std::vector<float> answer(4);
  EXPECT_EQ(shard->ApplyBlock({{}, 32, 0}, Ramp(0, 4), absl::MakeSpan(answer)).code(),
            absl::StatusCode::kFailedPrecondition)
      << "a stream that was open before";
}

// Sealing a job that is not here does nothing. A job that never had values is forgotten. If the disk fails, the job
// stays until the next try.
TEST_F(ParameterStoreTest, SealsOddCases) {
  EXPECT_TRUE(store_->Seal("job-7").ok());
  ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest({})).ok());
  EXPECT_EQ(Read("job-1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->Seal("job-1").ok());
  EXPECT_EQ(store_->center_bytes(), 0u);

  MakeCenter({});
  storage_->FailCommits(absl::UnavailableError("broken"));
  EXPECT_EQ(store_->Seal("job-1").message(), "broken");
  EXPECT_THAT(store_->jobs(), ElementsAre("job-1"));
  storage_->FailCommits(absl::OkStatus());
  EXPECT_TRUE(store_->Seal("job-1").ok());
  EXPECT_EQ(Read("job-1").value(), Ramp(0, 10));
}

// A forgotten job's shard is gone, from memory and disk, and its memory is free. That holds for a job that runs here,
// one that is not loaded yet and one that is sealed. A job that is not here is none of our business.
TEST_F(ParameterStoreTest, ForgetsAJob) {
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

// A shard whose key is not that of the forgotten job is another job's: it stays. So does one whose snapshots are all
// damaged, because nobody can tell whose it is.
TEST_F(ParameterStoreTest, FreesNoOtherJobsShard) {
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

// Groups of several jobs attach, exchange and end while snapshots are written. There is no data race, and at the end
// the disk has everything.
TEST_F(ParameterStoreTest, ManyThreads) {
  ParameterStoreOptions options = Options();
  options.max_center_bytes = 1 << 20;
  store_ = ParameterStore::Open(options).value();
  const auto name = [](uint32_t job) { return absl::StrCat("job-", job); };
  std::vector<std::thread> threads;
  for (uint32_t job = 0; job < 3; ++job) {
    for (uint32_t group = 0; group < 2; ++group) {
      threads.emplace_back([&, job, group]() {
        TestCenter center;
        center.job_id = name(job);
        const Speaker speaker = {group, 0, 1};
        const auto state = store_->Attach(kNow, MakeAttachRequest(center, group)).value().state();
        const auto shard = store_->Find(MakeSender(center)).value();
        if (state == v1::AttachResponse::INITIALIZE) {
          for (uint64_t block = 0; block < shard->blocks(); ++block) {
            const Range range = shard->BlockRange(block);
            ASSERT_TRUE(shard->WriteInitial(kNow, speaker, range.begin, Ramp(range.begin, range.size())).ok());
          }
          ASSERT_TRUE(store_->FinishInitialize(center.job_id, speaker).ok());
        }
        std::vector<float> answer(4);
        for (uint64_t sequence = 1; sequence <= 100; ++sequence) {
          const absl::Status status = shard->ApplyBlock({speaker, sequence, 0}, Ramp(0, 4, 1), absl::MakeSpan(answer));
          ASSERT_TRUE(status.ok() || status.code() == absl::StatusCode::kNotFound) << status;
        }
      });
    }
  }
  threads.emplace_back([&]() {
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(store_->SnapshotChanged().ok());
  });
  for (std::thread& thread : threads) thread.join();
  for (uint32_t job = 0; job < 3; ++job) ASSERT_TRUE(store_->Seal(name(job)).ok());
  EXPECT_EQ(store_->center_bytes(), 0u);
  for (uint32_t job = 0; job < 3; ++job) EXPECT_EQ(Read(name(job)).value().size(), 10u);
}

// File names sort by version and nothing else in the folder is taken for a snapshot.
TEST(ListSnapshots, KnowsItsFiles) {
  InMemoryStorage storage;
  for (const char* name :
       {"a-1.000000000002.snapshot", "a-1.000000000010.snapshot", "b.000000000001.snapshot", "a-1.2.snapshot",
        "A.000000000001.snapshot", "a-1.00000000000x.snapshot", "jobs.sqlite", "a-1.000000000003.snapshot.bak"}) {
    storage.Put(name, "");
  }
  const auto found = ListSnapshots(storage).value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found.at("a-1"), ElementsAre(2, 10));
  EXPECT_THAT(found.at("b"), ElementsAre(1));
}

}  // namespace
}  // namespace hooke
