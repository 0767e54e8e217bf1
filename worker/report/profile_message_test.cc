#include "worker/report/profile_message.h"

#include <string>

#include "gtest/gtest.h"

namespace hooke {
namespace {

CollectiveStatistics Statistics(uint64_t bytes, uint64_t time_ns) {
  CollectiveStatistics some;
  some.kind = {Operation::kAllGather, true, bytes, bytes};
  some.algorithm = "ring";
  some.calls = 3;
  some.bytes = 3 * bytes;
  some.time_ns = time_ns;
  some.step_ns = time_ns - 1;
  some.min_ns = 10;
  some.max_ns = 40;
  some.buckets = {{10, 11, 1}, {40, 42, 2}};
  return some;
}

// The message has every field of the profile.
TEST(ProfileMessageTest, SaysAll) {
  Profile profile;
  profile.step_ns = 1000;
  profile.calls_left_out = 2;
  profile.collectives = {Statistics(64, 100)};
  ProfileEvent phase, call;
  phase.begin_ns = 5;
  phase.end_ns = 9;
  phase.phase = v1::RankProgress::COMPUTE;
  phase.step = 17;
  call.track = 2;
  call.begin_ns = 6;
  call.end_ns = 8;
  call.operation = Operation::kBarrier;
  call.fused = true;
  call.bytes = 12;
  call.call = 3;
  profile.events = {phase, call};
  const v1::RankProfile message = ToMessage(profile);
  EXPECT_EQ(
      message.ShortDebugString(),
      "step_ns: 1000 "
      "collectives { operation: ALL_GATHER fused: true bytes_min: 64 bytes_max: 64 algorithm: \"ring\" bytes: 192 "
      "time_ns: 100 step_ns: 99 min_ns: 10 max_ns: 40 bucket_begin_ns: 10 bucket_begin_ns: 40 bucket_end_ns: 11 "
      "bucket_end_ns: 42 bucket_calls: 1 bucket_calls: 2 } "
      "events { begin_ns: 5 duration_ns: 4 phase: COMPUTE step: 17 } "
      "events { begin_ns: 6 duration_ns: 2 track: 2 operation: BARRIER bytes: 12 fused: true call: 3 } "
      "calls_left_out: 2");
}

// A profile beyond the bounds loses its oldest events and its shortest collectives. The message says how many calls of
// collectives were left out.
TEST(ProfileMessageTest, KeepsWithinBounds) {
  Profile profile;
  for (uint64_t i = 0; i < 3000; ++i) {
    profile.collectives.push_back(Statistics(i, 100 + i));
    ProfileEvent event;
    event.begin_ns = static_cast<int64_t>(i * 1000000000);
    event.end_ns = event.begin_ns + 1;
    event.track = 1;
    profile.events.push_back(event);
  }
  ProfileMessageBounds bounds;
  bounds.bytes_max = 20000;
  const v1::RankProfile message = ToMessage(profile, bounds);
  EXPECT_LE(message.ByteSizeLong(), bounds.bytes_max);
  EXPECT_GT(message.ByteSizeLong(), bounds.bytes_max / 2);
  EXPECT_EQ(message.collectives(0).bytes_max(), 2999u);
  EXPECT_EQ(message.events(message.events_size() - 1).begin_ns(), uint64_t{2999} * 1000000000);
  EXPECT_LT(message.events(0).begin_ns(), message.events(1).begin_ns());
  EXPECT_EQ(message.calls_left_out(), 3 * (3000u - static_cast<uint64_t>(message.collectives_size())));
  bounds.collectives_max = 7;
  EXPECT_EQ(ToMessage(profile, bounds).collectives_size(), 7);
}

}  // namespace
}  // namespace hooke
