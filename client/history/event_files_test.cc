// Shows that event files have the values of a history, in records that a reader accepts. `tests/run --tensorboard` has
// TensorBoard read them.

#include "client/history/event_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/event_file.pb.h"

namespace hooke {
namespace {

using testing::ElementsAre;

// Takes `bytes` from the front of the text, as a number with the lowest byte first.
uint64_t TakeNumber(absl::string_view& text, size_t bytes) {
  EXPECT_GE(text.size(), bytes);
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = (value << 8) | static_cast<uint8_t>(text[i]);
  text.remove_prefix(bytes);
  return value;
}

uint64_t Unmasked(uint64_t masked) {
  const uint32_t rotated = static_cast<uint32_t>(masked) - 0xa282ead8U;
  return (rotated >> 17) | (rotated << 15);
}

// Returns the events of a file as "step tag=value ...", and checks the sums.
std::vector<std::string> Read(absl::string_view file) {
  std::vector<std::string> lines;
  while (!file.empty()) {
    const absl::string_view length_bytes = file.substr(0, 8);
    const uint64_t length = TakeNumber(file, 8);
    EXPECT_EQ(Unmasked(TakeNumber(file, 4)), Crc32c(length_bytes));
    const absl::string_view data = file.substr(0, length);
    file.remove_prefix(data.size());
    EXPECT_EQ(Unmasked(TakeNumber(file, 4)), Crc32c(data));
    event_file::Event event;
    EXPECT_TRUE(event.ParseFromString(std::string(data)));
    std::string line = absl::StrFormat("%.3f %d %s", event.wall_time(), event.step(), event.file_version());
    for (const event_file::Summary::Value& value : event.summary().value()) {
      EXPECT_TRUE(value.has_simple_value()) << value.tag();
      absl::StrAppend(&line, " ", value.tag(), "=", value.simple_value());
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(EventFilesTest, HaveEachSeriesAsARun) {
  std::vector<v1::HistoryPoint> points(3);
  points[0].set_group(1);
  points[0].set_unix_ms(5500);
  points[0].set_step(7);
  points[0].set_loss(0.5);
  points[0].set_samples_per_s(100);
  points[1] = points[0];
  points[1].set_step(9);
  points[1].set_loss(std::numeric_limits<double>::quiet_NaN());
  points[1].set_exchange_ms(2.5);
  points[1].set_center_distance(0.125);
  points[1].set_staleness(1.5);
  points[0].set_computing_ms(300);
  points[0].set_exchanging_ms(100);
  points[1].set_computing_ms(600);
  points[1].set_collectives_ms(300);
  points[1].set_exchanging_ms(100);
  points[2].set_unix_ms(1700000001250);
  points[2].set_step(9);
  points[2].set_loss(0.25);
  points[2].set_accuracy(0.75);
  const std::vector<EventFile> files = EventFiles("a-1", points);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "a-1/group-1/events.out.tfevents.0000000005.hooke");
  EXPECT_EQ(files[1].path, "a-1/center/events.out.tfevents.1700000001.hooke");
  EXPECT_THAT(
      Read(files[0].content),
      ElementsAre("5.500 0 brain.Event:2",
                  "5.500 7  loss=0.5 samples_per_s=100 compute_share=0.75 collective_share=0 exchange_share=0.25",
                  "5.500 9  loss=nan samples_per_s=100 exchange_ms=2.5 "
                  "center_distance=0.125 staleness=1.5 compute_share=0.5 "
                  "collective_share=0.5 exchange_share=0"));
  EXPECT_THAT(Read(files[1].content),
              ElementsAre("1700000001.250 0 brain.Event:2", "1700000001.250 9  loss=0.25 accuracy=0.75"));
  EXPECT_TRUE(EventFiles("a-1", {}).empty());
}

// The values are those of RFC 3720, B.4, and the usual check value.
TEST(Crc32cTest, PublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

}  // namespace
}  // namespace hooke
