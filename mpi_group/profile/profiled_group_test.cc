#include "mpi_group/profile/profiled_group.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/profile/profile.h"
#include "mpi_group/rank_threads.h"

namespace hooke {
namespace {

constexpr int kRanks = 2;

// Two ranks, each with a recorder of its own.
class ProfiledGroupTest : public testing::Test {
 protected:
  ProfiledGroupTest() {
    std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(kRanks);
    for (std::unique_ptr<Group>& group : groups) {
      ProfileOptions options;
      options.clock = MonotonicNanoseconds;
      recorders_.push_back(std::make_unique<ProfileRecorder>(options));
      groups_.push_back(MakeProfiledGroup(std::move(group), *recorders_.back()));
    }
  }

  std::vector<std::unique_ptr<ProfileRecorder>> recorders_;
  std::vector<std::unique_ptr<Group>> groups_;
};

// Every operation works as without a profile, and each call is counted under its name, size and fusion.
TEST_F(ProfiledGroupTest, PassesOnAndRecords) {
  RunRanks(kRanks, [this](int rank) {
    Group& group = *groups_[rank];
    EXPECT_EQ(group.rank(), rank);
    EXPECT_EQ(group.size(), kRanks);
    absl::StatusOr<absl::Span<float>> shared = AllocateSharedValues<float>(group, 4);
    ASSERT_TRUE(shared.ok());
    std::vector<float> a = {1, 2}, b = {3, 4};
    const std::vector<ValueRange> parts = {{0, 1}, {1, 2}};
    const TensorList one(absl::MakeSpan(a));
    const TensorList two({absl::MakeSpan(a), absl::MakeSpan(b)});
    EXPECT_TRUE(group.AllReduce(two, ReduceOp::kSum).ok());
    EXPECT_EQ(a, (std::vector<float>{2, 4}));
    EXPECT_EQ(b, (std::vector<float>{6, 8}));
    EXPECT_TRUE(group.AllReduce(one, ReduceOp::kMean).ok());
    EXPECT_TRUE(group.Reduce(one, ReduceOp::kMax, 0).ok());
    EXPECT_TRUE(group.Broadcast(one, 0).ok());
    EXPECT_TRUE(group.ReduceScatter(one, parts, ReduceOp::kMin).ok());
    EXPECT_TRUE(group.AllGather(one, parts).ok());
    EXPECT_TRUE(group.Barrier().ok());
    EXPECT_EQ(a, (std::vector<float>{2, 4}));
  });
  constexpr Operation kOrder[] = {Operation::kAllReduce, Operation::kAllReduce,     Operation::kReduce,
                                  Operation::kBroadcast, Operation::kReduceScatter, Operation::kAllGather,
                                  Operation::kBarrier};
  for (const std::unique_ptr<ProfileRecorder>& recorder : recorders_) {
    const Profile profile = recorder->Snapshot();
    ASSERT_EQ(profile.collectives.size(), 7u);
    for (size_t i = 0; i < 7; ++i) {
      const CollectiveStatistics& some = profile.collectives[i];
      EXPECT_EQ(some.calls, 1u);
      EXPECT_EQ(some.kind.fused, i == 0);
      EXPECT_EQ(some.kind.bytes_max, i == 0 ? 16u : i == 6 ? 0u : 8u);
      EXPECT_EQ(some.kind.operation, kOrder[i]);
      EXPECT_NE(some.algorithm, "");
      EXPECT_GT(some.time_ns, 0u);
    }
    ASSERT_EQ(profile.events.size(), 7u);
    for (size_t i = 1; i < 7; ++i) EXPECT_GE(profile.events[i].begin_ns, profile.events[i - 1].end_ns);
  }
}

// A call that fails is in the profile too, because users look for such calls.
TEST_F(ProfiledGroupTest, RecordsFailures) {
  groups_[1].reset();
  EXPECT_FALSE(groups_[0]->Barrier().ok());
  EXPECT_EQ(recorders_[0]->Snapshot().collectives.at(0).kind.operation, Operation::kBarrier);
}

// A clone's calls are recorded too, on a track of their own.
TEST_F(ProfiledGroupTest, ClonesRecord) {
  RunRanks(kRanks, [this](int rank) {
    absl::StatusOr<std::unique_ptr<Group>> clone = groups_[rank]->Clone();
    ASSERT_TRUE(clone.ok()) << clone.status();
    EXPECT_TRUE((*clone)->Barrier().ok());
    EXPECT_TRUE(groups_[rank]->Barrier().ok());
  });
  const Profile profile = recorders_[0]->Snapshot();
  ASSERT_EQ(profile.events.size(), 2u);
  EXPECT_EQ(profile.events[0].track, 2u);
  EXPECT_EQ(profile.events[1].track, 1u);
}

}  // namespace
}  // namespace hooke
