#include "server/parameters/parameter_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/job.pb.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/snapshot_history.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_store.h"

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

using ParameterStoreTest = TestStore;

// Only a shard that changed is written, and two snapshots of it are kept.
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

// A full disk fails the snapshot, not the exchanges. The previous snapshot stays. When there is room again, the next
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

// If a shard is made after the server began to stop, no exchange in it waits for other groups.
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

// If a group attaches again and again, a line is logged only when the answer changes.
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

// Groups of several jobs attach and exchange while snapshots are written, and then all jobs are sealed. There is no
// data race, and at the end the disk has everything.
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

// ListSnapshots returns the numbers of each job's snapshots in ascending order. Files with other names are not taken
// for snapshots.
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
