#include "server/cluster/profile_check.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using testing::HasSubstr;

v1::RankProfile Good() {
  v1::RankProfile profile;
  profile.set_step_ns(100);
  profile.set_machine("m");
  profile.mutable_clock()->set_offset_ns(-5);
  v1::CollectiveProfile* some = profile.add_collectives();
  some->set_operation(v1::ALL_REDUCE);
  some->set_bytes_min(4);
  some->set_bytes_max(4);
  for (uint64_t begin : {10, 11, 40}) {
    some->add_bucket_begin_ns(begin);
    some->add_bucket_end_ns(begin + 1);
    some->add_bucket_calls(3);
  }
  v1::TraceEvent* phase = profile.add_events();
  phase->set_phase(v1::RankProgress::COMPUTE);
  v1::TraceEvent* call = profile.add_events();
  call->set_track(1);
  call->set_operation(v1::BARRIER);
  return profile;
}

// A profile such as ranks send is accepted.
TEST(ProfileCheckTest, TakesWhatIsAllowed) {
  EXPECT_TRUE(CheckProfile(Good()).ok()) << CheckProfile(Good());
  EXPECT_TRUE(CheckProfile({}).ok());
}

// A profile with a field out of range is refused, and the message names the field.
TEST(ProfileCheckTest, RefusesTheRest) {
  const struct {
    const char* named;
    std::function<void(v1::RankProfile&)> spoil;
  } cases[] = {
      {"size", [](v1::RankProfile& p) { p.set_machine(std::string(300 << 10, 'x')); }},
      {"machine", [](v1::RankProfile& p) { p.set_machine(std::string(129, 'x')); }},
      {"clock.error_ns", [](v1::RankProfile& p) { p.mutable_clock()->set_error_ns(-1); }},
      {"collectives",
       [](v1::RankProfile& p) {
         for (int i = 0; i < 1025; ++i) p.add_collectives();
       }},
      {"events",
       [](v1::RankProfile& p) {
         for (int i = 0; i < 2049; ++i) p.add_events();
       }},
      {"operation", [](v1::RankProfile& p) { p.mutable_collectives(0)->clear_operation(); }},
      {"operation",
       [](v1::RankProfile& p) { p.mutable_collectives(0)->set_operation(static_cast<v1::Operation>(99)); }},
      {"bytes_min", [](v1::RankProfile& p) { p.mutable_collectives(0)->set_bytes_min(5); }},
      {"algorithm", [](v1::RankProfile& p) { p.mutable_collectives(0)->set_algorithm(std::string(65, 'x')); }},
      {"bucket_calls", [](v1::RankProfile& p) { p.mutable_collectives(0)->add_bucket_calls(1); }},
      {"bucket_calls", [](v1::RankProfile& p) { p.mutable_collectives(0)->set_bucket_calls(1, ~uint64_t{0}); }},
      {"bucket_begin_ns", [](v1::RankProfile& p) { p.mutable_collectives(0)->set_bucket_begin_ns(1, 9); }},
      {"bucket_begin_ns", [](v1::RankProfile& p) { p.mutable_collectives(0)->set_bucket_end_ns(2, 40); }},
      {"track", [](v1::RankProfile& p) { p.mutable_events(1)->set_track(65); }},
      {"begin_ns", [](v1::RankProfile& p) { p.mutable_events(1)->set_begin_ns(~uint64_t{0}); }},
      {"begin_ns", [](v1::RankProfile& p) { p.mutable_events(1)->set_duration_ns(~uint64_t{0}); }},
      {"phase or",
       [](v1::RankProfile& p) { p.mutable_events(0)->set_phase(static_cast<v1::RankProgress::Phase>(99)); }},
      {"phase or", [](v1::RankProfile& p) { p.mutable_events(1)->clear_operation(); }},
  };
  for (const auto& one : cases) {
    v1::RankProfile profile = Good();
    one.spoil(profile);
    const absl::Status status = CheckProfile(profile);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.named;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.named));
  }
}

}  // namespace
}  // namespace hooke
