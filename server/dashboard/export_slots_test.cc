#include "server/dashboard/export_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

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

// A download may take ten minutes, or one second for each MiB if that is longer.
TEST(ExportSlotsTest, HowLongADownloadMayTake) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(LongestDownload(0), absl::Minutes(10));
  EXPECT_EQ(LongestDownload(600 * kMiB), absl::Minutes(10));
  EXPECT_EQ(LongestDownload(601 * kMiB), absl::Seconds(601));
  EXPECT_EQ(LongestDownload(7200 * kMiB), absl::Hours(2));
}

// A download ends when its time is over, however many pieces are left. Until then each piece comes. After that its
// source, which calls servers, is not asked any more.
TEST(ExportSlotsTest, ADownloadEndsWhenItsTimeIsOver) {
  constexpr uint64_t kBytes = uint64_t{1200} << 20;
  absl::Time now = kNow;
  int asked = 0;
  const NextPiece next = WithinLongestDownload(
      kBytes, [&asked]() -> absl::StatusOr<std::string> { return std::string(static_cast<size_t>(++asked), 'p'); },
      [&now] { return now; });
  EXPECT_EQ(*next(), "p");
  now += absl::Minutes(20) - absl::Nanoseconds(1);
  EXPECT_EQ(*next(), "pp");
  now += absl::Nanoseconds(1);
  EXPECT_EQ(*next(), "ppp");
  now += absl::Nanoseconds(1);
  EXPECT_EQ(next().status(), absl::DeadlineExceededError("the browser takes the model too slowly"));
  now += absl::Hours(1);
  EXPECT_EQ(next().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(asked, 3);
}

// The download passes on an error of its source.
TEST(ExportSlotsTest, AnErrorOfTheSourceIsTheDownloads) {
  absl::Time now = kNow + absl::Hours(5);
  const NextPiece next = WithinLongestDownload(
      1, []() -> absl::StatusOr<std::string> { return absl::UnavailableError("server b:1 is away"); },
      [&now] { return now; });
  EXPECT_EQ(next().status(), absl::UnavailableError("server b:1 is away"));
  now += absl::Minutes(10);
  EXPECT_EQ(next().status(), absl::UnavailableError("server b:1 is away"));
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
