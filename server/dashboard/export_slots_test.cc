#include "server/dashboard/export_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1000);

// A third download waits until one of two has ended, or a ticket was not used in time.
TEST(ExportSlotsTest, TwoAtOnce) {
  ExportSlots slots;
  ASSERT_TRUE(slots.Reserve("a", "job-1", kNow).ok());
  ASSERT_TRUE(slots.Reserve("b", "job-2", kNow).ok());
  const absl::Status full = slots.Reserve("c", "job-3", kNow);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("2 models go through the coordinator already"));
  EXPECT_EQ(*slots.Begin("a", kNow), "job-1");
  slots.End("a");
  slots.End("a");
  ASSERT_TRUE(slots.Reserve("c", "job-3", kNow).ok());
  EXPECT_FALSE(slots.Reserve("d", "job-4", kNow + absl::Seconds(29)).ok());
  EXPECT_TRUE(slots.Reserve("d", "job-4", kNow + absl::Seconds(30)).ok());
}

// A small model has ten minutes, a large one a second for each MiB.
TEST(ExportSlotsTest, HowLongADownloadMayTake) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(LongestDownload(0), absl::Minutes(10));
  EXPECT_EQ(LongestDownload(600 * kMiB), absl::Minutes(10));
  EXPECT_EQ(LongestDownload(601 * kMiB), absl::Seconds(601));
  EXPECT_EQ(LongestDownload(7200 * kMiB), absl::Hours(2));
}

// A ticket is good for one download, however long that takes.
TEST(ExportSlotsTest, ATicketIsGoodOnce) {
  ExportSlots slots;
  ASSERT_TRUE(slots.Reserve("a", "job-1", kNow).ok());
  ASSERT_TRUE(slots.Reserve("b", "job-2", kNow).ok());
  EXPECT_EQ(*slots.Begin("a", kNow), "job-1");
  EXPECT_EQ(
      slots.Begin("a", kNow).status(),
      absl::NotFoundError("this download was begun already, or not within 30s: begin it on the job's page again"));
  EXPECT_FALSE(slots.Begin("x", kNow).ok());
  EXPECT_FALSE(slots.Begin("b", kNow + absl::Seconds(30)).ok());
  ASSERT_TRUE(slots.Reserve("c", "job-3", kNow + absl::Hours(1)).ok());
  EXPECT_FALSE(slots.Reserve("d", "job-4", kNow + absl::Hours(1)).ok());
}

}  // namespace
}  // namespace hooke
