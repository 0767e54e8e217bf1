// A store whose job gets another number of groups: the first group of the later generation that attaches has the center
// go on in a new shard.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/parameters/kept_states.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_store.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A later generation of the default center, with three groups.
TestCenter Later() {
  TestCenter center;
  center.groups = 3;
  center.first_incarnation = 5;
  center.first_step = 40;
  return center;
}

class ParameterStoreGenerationsTest : public TestStore {
 protected:
  absl::StatusOr<v1::AttachResponse> Attach(const TestCenter& center, uint32_t group, uint32_t incarnation) {
    return store_->Attach(kNow, MakeAttachRequest(center, group, incarnation));
  }
  // Makes an exchange of a group that moves the first block of the center by `by`.
  absl::Status ExchangeAs(const TestCenter& center, const Speaker& speaker, uint64_t sequence, float by) {
    const auto shard = store_->Find(MakeSender(center, speaker.group, 0, speaker.incarnation));
    if (!shard.ok()) return shard.status();
    std::vector<float> x = (*shard)->CopyBlock(0).values;
    for (float& value : x) value += 4 * by;
    std::vector<float> answer(x.size());
    return (*shard)->ApplyBlock({speaker, sequence, 0}, x, absl::MakeSpan(answer));
  }
  void Keep(uint32_t group) {
    auto writer = store_->states().Begin({"job-1", group, 0}, {1, 16}, {0, 0});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Commit({}).ok());
  }
};

// The center's values go on. READY means that a snapshot of the new generation is on disk.
TEST_F(ParameterStoreGenerationsTest, GoesOnWithMoreGroups) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  const std::shared_ptr<Shard> before = store_->Find(MakeSender({})).value();
  for (uint32_t group = 0; group < 3; ++group) {
    const v1::AttachResponse attached = Attach(Later(), group, 5 + group).value();
    EXPECT_EQ(attached.state(), v1::AttachResponse::READY);
    EXPECT_EQ(attached.last_sequence(), 40u);
    EXPECT_EQ(attached.block_values(), 4u);
  }
  EXPECT_TRUE(before->closed());
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.000000000001.snapshot", "job-1.000000000002.snapshot"));
  EXPECT_EQ(Read("job-1").value(), Moved(1));
  EXPECT_EQ(ExchangeAs(Later(), {2, 0, 7}, 41, 1), absl::OkStatus());
  EXPECT_EQ(Read("job-1").value(), Moved(2));
  EXPECT_THAT(log_.str(), HasSubstr("a new generation begins, with 3 groups from step 40 on, start 5"));
  EXPECT_TRUE(store_->Seal("job-1").ok());
  EXPECT_EQ(Read("job-1").value(), Moved(2));
  EXPECT_EQ(store_->center_bytes(), 0u);
  EXPECT_EQ(Attach(Later(), 0, 9).status().code(), absl::StatusCode::kFailedPrecondition) << "the job has ended";
}

// After a restart of the server the groups go on from a snapshot of either generation. If it is of the earlier one,
// calls of the later generation are told to attach again.
TEST_F(ParameterStoreGenerationsTest, GoesOnFromASnapshotOfEitherGeneration) {
  for (const bool older : {false, true}) {
    TestCenter center;
    center.job_id = older ? "job-2" : "job-1";
    TestCenter later = Later();
    later.job_id = center.job_id;
    MakeCenter(center);
    Exchange(center.job_id, 16, 1);
    ASSERT_TRUE(store_->SnapshotChanged().ok());
    ASSERT_TRUE(Attach(later, 2, 7).ok());
    ASSERT_TRUE(ExchangeAs(later, {2, 0, 7}, 41, 1).ok());
    if (older) {
      storage_->Truncate("job-2.000000000003.snapshot", 60);  // The only one of the later generation.
    } else {
      ASSERT_TRUE(store_->SnapshotChanged().ok());
    }
    Restart();
    const absl::Status told = ExchangeAs(later, {2, 0, 7}, 42, 1);
    EXPECT_EQ(told.code(), older ? absl::StatusCode::kNotFound : absl::StatusCode::kOk) << told;
    const v1::AttachResponse attached = Attach(later, 2, 7).value();
    EXPECT_EQ(attached.state(), v1::AttachResponse::READY);
    EXPECT_EQ(attached.last_sequence(), 40u) << "the other blocks have no exchange";
    EXPECT_EQ(store_->Find(MakeSender(later)).value()->HighestSequence(2), older ? 40u : 42u);
    const auto origin = store_->OriginOf(MakeSender(later, 2, 0, 7));
    ASSERT_TRUE(origin.has_value());
    EXPECT_EQ(origin->sequence, older ? 40u : 41u);
    EXPECT_EQ(ExchangeAs(later, {2, 0, 7}, 43, 1), absl::OkStatus());
    EXPECT_EQ(Attach(center, 0, 2).status().code(), absl::StatusCode::kAborted) << "its generation is over";
  }
}

// Calls of an earlier start are refused, also those of a group that no longer exists.
TEST_F(ParameterStoreGenerationsTest, RefusesEarlierStarts) {
  MakeCenter({});
  ASSERT_TRUE(Attach({}, 1, 2).ok());
  TestCenter one = Later();
  one.groups = 1;
  ASSERT_TRUE(Attach(one, 0, 5).ok());
  for (const uint32_t group : {0, 1}) {
    for (const absl::Status& refusal :
         {Attach({}, group, 4).status(), Attach(one, group, 4).status(), ExchangeAs({}, {group, 0, 2}, 17, 1),
          store_->Save(MakeSender({}, group, 0, 2))}) {
      EXPECT_EQ(refusal.code(), absl::StatusCode::kAborted) << refusal;
      EXPECT_THAT(std::string(refusal.message()), HasSubstr("a generation that is over"));
    }
  }
  EXPECT_EQ(Attach({}, 0, 9).status().code(), absl::StatusCode::kAborted)
      << "the job of its request is the earlier one";
  EXPECT_TRUE(store_->Save(MakeSender(one, 0, 0, 5)).ok());
}

// The coordinator ends a generation before it begins the next. What the store answers is on disk, and so is the end: a
// server that was started again still refuses the old groups.
TEST_F(ParameterStoreGenerationsTest, AnEndHoldsOverARestart) {
  TestCenter center;
  center.values = 4;
  MakeCenter(center);
  ASSERT_TRUE(Attach(center, 1, 3).ok());
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(ExchangeAs(center, {1, 0, 3}, 24, 1).ok());
  EXPECT_EQ(store_->EndGeneration("job-1", "another key", 5).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(ExchangeAs(center, {1, 0, 3}, 32, 1).ok());
  for (int restart = 0; restart < 3; ++restart) {
    const auto reached = store_->EndGeneration("job-1", center.job_key, 5);
    ASSERT_TRUE(reached.ok()) << reached.status();
    ASSERT_EQ(reached->size(), 2u);
    EXPECT_EQ((*reached)[0].step, 16u);
    EXPECT_EQ((*reached)[0].incarnation, 1u);
    EXPECT_EQ((*reached)[1].step, 32u);
    EXPECT_EQ((*reached)[1].incarnation, 3u);
    Restart();
    for (const absl::Status& refusal :
         {Attach(center, 1, 3).status(), ExchangeAs(center, {1, 0, 3}, 40, 1), ExchangeAs(center, {0, 0, 1}, 40, 1)}) {
      EXPECT_EQ(refusal.code(), absl::StatusCode::kAborted) << refusal;
    }
  }
  TestCenter later = Later();
  later.values = 4;
  EXPECT_EQ(Attach(later, 0, 5)->state(), v1::AttachResponse::READY);
  EXPECT_EQ(store_->EndGeneration("job-1", center.job_key, 5).status().code(), absl::StatusCode::kAborted);
}

// All groups that had attached have made their last exchange and saved it. A start that was cut off before it attached
// may still come. It is refused, also after the server was started again.
TEST_F(ParameterStoreGenerationsTest, AStartThatComesAfterTheEndIsRefusedAfterARestart) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->Find(MakeSender({})).value()->EndGroup({}, false).ok());
  ASSERT_TRUE(store_->Save(MakeSender({})).ok());
  ASSERT_TRUE(store_->EndGeneration("job-1", TestCenter().job_key, 5).ok());
  const uint64_t snapshots = store_->Figures().snapshots;
  ASSERT_TRUE(store_->EndGeneration("job-1", TestCenter().job_key, 5).ok());
  EXPECT_EQ(store_->Figures().snapshots, snapshots) << "the end is written once";
  Restart();
  for (const absl::Status& refusal : {Attach({}, 0, 4).status(), Attach({}, 1, 1).status(),
                                      store_->Save(MakeSender({}, 1, 0, 4)), store_->Save(MakeSender({}))}) {
    EXPECT_EQ(refusal.code(), absl::StatusCode::kAborted) << refusal;
  }
  EXPECT_EQ(Read("job-1").value(), Moved(1));
}

// The newest snapshot is damaged, and the one before it says that the earlier generation has ended. No start of the
// later generation may exchange before it has attached, which moves the center into that generation. This holds for the
// very first start, too, although the snapshot has its number.
TEST_F(ParameterStoreGenerationsTest, AStartOfTheNextGenerationAttachesToAnEndedOne) {
  MakeCenter({});
  Exchange("job-1", 16, 1);
  ASSERT_TRUE(store_->EndGeneration("job-1", TestCenter().job_key, 5).ok());
  for (uint32_t group = 0; group < 3; ++group) ASSERT_TRUE(Attach(Later(), group, 5).ok());
  ASSERT_TRUE(ExchangeAs(Later(), {0, 0, 5}, 41, 1).ok());
  storage_->Truncate(storage_->List().value().back(), 60);
  Restart();
  for (uint32_t group = 0; group < 3; ++group) {
    for (const absl::Status& told :
         {ExchangeAs(Later(), {group, 0, 5}, 42, 1), ExchangeAs(Later(), {group, 0, 6}, 42, 1)}) {
      EXPECT_EQ(told.code(), absl::StatusCode::kNotFound) << told;
    }
  }
  EXPECT_EQ(ExchangeAs({}, {0, 0, 1}, 24, 1).code(), absl::StatusCode::kAborted) << "its generation is over";
  EXPECT_EQ(Read("job-1").value(), Moved(1));
  ASSERT_TRUE(Attach(Later(), 0, 5).ok());
  EXPECT_EQ(ExchangeAs(Later(), {0, 0, 5}, 42, 1), absl::OkStatus());
  EXPECT_EQ(Read("job-1").value(), Moved(2));
}

// Without a shard there is nothing to end. If the shard cannot be written, EndGeneration returns an error: the server
// could still go back to an older snapshot.
TEST_F(ParameterStoreGenerationsTest, AnEndThatIsNotOnDiskIsNoAnswer) {
  EXPECT_TRUE(store_->EndGeneration("job-1", "key", 5)->empty());
  MakeCenter({});
  Exchange("job-1", 16, 1);
  storage_->FailCommits(absl::UnavailableError("broken disk"));
  EXPECT_EQ(store_->EndGeneration("job-1", TestCenter().job_key, 5).status().code(), absl::StatusCode::kUnavailable);
  storage_->FailCommits(absl::OkStatus());
  EXPECT_EQ(store_->EndGeneration("job-1", TestCenter().job_key, 5)->size(), 2u);
}

// A request that is wrong begins no generation: the groups of the present one train on.
TEST_F(ParameterStoreGenerationsTest, AWrongRequestChangesNothing) {
  MakeCenter({});
  const uint64_t bytes = store_->center_bytes();
  TestCenter other_key = Later(), other_model = Later(), huge = Later();
  other_key.job_key = "another key";
  other_model.values = 11;
  huge.groups = 1000;
  EXPECT_EQ(Attach(other_key, 0, 5).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Attach(other_model, 0, 5).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Attach(Later(), 3, 5).status().code(), absl::StatusCode::kInvalidArgument) << "there is no group 3";
  EXPECT_EQ(Attach(Later(), 0, 4).status().code(), absl::StatusCode::kAborted) << "start 4 is no start of it";
  const absl::Status full = Attach(huge, 0, 5).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("raise --max-center-bytes"));
  EXPECT_EQ(store_->center_bytes(), bytes);
  Exchange("job-1", 16, 1);
  EXPECT_EQ(Read("job-1").value(), Moved(1));
}

// The center changes hands without a second copy: a server that has room for one shard can scale its job. The memory
// that is counted is that of the present generation.
TEST_F(ParameterStoreGenerationsTest, CountsTheMemoryOfOneShard) {
  TestCenter center;
  center.values = 400;
  ParameterStoreOptions options = Options();
  options.max_center_bytes = PlanShard(MakeAttachRequest(center), 4)->memory_bytes + 1000;
  store_ = ParameterStore::Open(options).value();
  MakeCenter(center);
  TestCenter later = Later();
  later.values = 400;
  later.groups = 1;
  ASSERT_TRUE(Attach(later, 0, 5).ok());
  EXPECT_EQ(store_->center_bytes(), PlanShard(MakeAttachRequest(later), 4)->memory_bytes);
  later.groups = 2;
  later.first_incarnation = 7;
  ASSERT_TRUE(Attach(later, 0, 7).ok());
  EXPECT_EQ(store_->center_bytes(), PlanShard(MakeAttachRequest(later), 4)->memory_bytes);
}

// The ranks of groups that go on find their states. Those of groups that no longer exist are removed.
TEST_F(ParameterStoreGenerationsTest, KeepsTheStatesOfGroupsThatGoOn) {
  MakeCenter({});
  Keep(0);
  Keep(1);
  TestCenter one = Later();
  one.groups = 1;
  ASSERT_TRUE(Attach(one, 0, 5).ok());
  EXPECT_THAT(store_->states().List({"job-1", 0, 0}), ElementsAre(KeptStateId{1, 16}));
  EXPECT_TRUE(store_->states().List({"job-1", 1, 0}).empty());
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.0-0.0000000001.000000000000000016.state",
                                                    "job-1.000000000001.snapshot", "job-1.000000000002.snapshot"));
}

// Groups of three generations attach, exchange, read and save at the same time. No exchange is applied in part, and the
// last generation has the center.
TEST_F(ParameterStoreGenerationsTest, ManyThreadsAtOnce) {
  MakeCenter({});
  std::atomic<bool> done = false;
  std::atomic<uint64_t> applied = 0;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!done) {
      const absl::StatusOr<std::vector<float>> values = Read("job-1");
      ASSERT_TRUE(values.ok()) << values.status();
      ASSERT_EQ(values->size(), 10u);
      ASSERT_TRUE(store_->SnapshotChanged().ok());
    }
  });
  for (uint32_t generation = 0; generation < 3; ++generation) {
    TestCenter center;
    center.groups = 2 + generation;
    center.first_incarnation = 10 * generation;
    center.first_step = uint64_t{1000} * generation;
    for (uint32_t group = 0; group < 2; ++group) {
      threads.emplace_back([this, center, group, &applied] {
        const uint32_t incarnation = center.first_incarnation + 1;
        if (!Attach(center, group, incarnation).ok()) return;
        for (uint64_t sequence = center.first_step + 1; sequence <= center.first_step + 200; ++sequence) {
          const absl::Status status = ExchangeAs(center, {group, 0, incarnation}, sequence, 0);
          if (!status.ok()) {
            EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
            return;
          }
          ++applied;
        }
      });
    }
  }
  for (size_t i = 1; i < threads.size(); ++i) threads[i].join();
  done = true;
  threads[0].join();
  const std::shared_ptr<Shard> shard = store_->Find(MakeSender({})).value();
  EXPECT_EQ(shard->plan().job.first_incarnation(), 20u);
  EXPECT_EQ(shard->CopyBlock(0).updates, applied);
  EXPECT_EQ(shard->HighestSequence(0), 2200u);
}

}  // namespace
}  // namespace hooke
