#include "worker/daemon/group_part.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

v1::StartGroupCommand Start() {
  v1::StartGroupCommand start;
  start.mutable_group()->set_job_id("two-1");
  start.set_ranks(5);
  uint32_t first = 0;
  for (const char* worker : {"a", "b"}) {
    v1::GroupPart* part = start.add_parts();
    part->set_worker(worker);
    part->set_first_rank(first);
    part->set_ranks(3 - start.parts_size() + 1);
    part->set_address(first == 0 ? "10.0.0.1" : "10.0.0.2");
    first += part->ranks();
  }
  start.set_part(1);
  return start;
}

// A part knows its own ranks and the workers of the others. mpirun gets all nodes.
TEST(GroupPartTest, KnowsItsRanks) {
  const v1::StartGroupCommand start = Start();
  EXPECT_EQ(CheckStartGroup(start, 2, false), absl::OkStatus());
  const PartHere part = PartOf(start);
  EXPECT_EQ(part.first_rank, 3u);
  EXPECT_EQ(part.ranks, 2u);
  EXPECT_FALSE(part.alone);
  EXPECT_FALSE(part.leads);
  ASSERT_EQ(HostsOf(start).size(), 2u);
  EXPECT_EQ(HostsOf(start)[1].address, "10.0.0.2");
  ASSERT_EQ(ElsewhereOf(start).size(), 1u);
  EXPECT_EQ(ElsewhereOf(start)[0].worker, "a");
}

// A start without parts means that the whole group runs on this worker.
TEST(GroupPartTest, AWholeGroup) {
  v1::StartGroupCommand start = Start();
  start.clear_parts();
  EXPECT_EQ(PartOf(start).ranks, 5u);
  EXPECT_TRUE(PartOf(start).alone);
  EXPECT_TRUE(PartOf(start).leads);
  EXPECT_TRUE(HostsOf(start).empty());
}

// A start is refused if an address is no IP address, or if the parts do not cover the group's ranks in order. It
// is also refused if its own part is not in the list, or if this worker's part has more ranks than slots.
TEST(GroupPartTest, RefusesWrongParts) {
  v1::StartGroupCommand start = Start();
  start.mutable_parts(0)->set_address("10.0.0.1,--mca");
  EXPECT_THAT(std::string(CheckStartGroup(start, 4, false).message()), HasSubstr("each has an IP address"));
  start = Start();
  start.set_part(2);
  EXPECT_EQ(CheckStartGroup(start, 4, false).code(), absl::StatusCode::kInvalidArgument);
  start = Start();
  start.mutable_parts(1)->set_first_rank(2);
  EXPECT_EQ(CheckStartGroup(start, 4, false).code(), absl::StatusCode::kInvalidArgument);
  start = Start();
  start.set_ranks(6);
  EXPECT_EQ(CheckStartGroup(start, 4, false).code(), absl::StatusCode::kInvalidArgument);
  start = Start();
  start.mutable_parts()->RemoveLast();
  start.set_part(0);
  EXPECT_EQ(CheckStartGroup(start, 4, false).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckStartGroup(Start(), 1, false).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace hooke
