#include "server/dashboard/page_profile.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/coordinator/coordinator_fixture.h"
#include "server/journal/profile_store.h"

namespace hooke {
namespace {

// One all-reduce of 4 bytes that takes 20 ns of the rank's 100.
v1::ReadProfileResponse Rank(uint32_t number) {
  v1::ReadProfileResponse rank;
  rank.set_rank(number);
  v1::RankProfile& profile = *rank.mutable_profile();
  profile.set_machine("m");
  profile.set_step_ns(100);
  v1::CollectiveProfile& some = *profile.add_collectives();
  some.set_operation(v1::ALL_REDUCE);
  some.set_algorithm("<script>\x1b");
  some.set_bytes_min(4);
  some.set_bytes_max(4);
  some.set_bytes(4);
  some.set_time_ns(20);
  some.set_step_ns(20);
  some.set_min_ns(20);
  some.set_max_ns(20);
  some.add_bucket_begin_ns(20);
  some.add_bucket_end_ns(21);
  some.add_bucket_calls(1);
  for (const auto phase : {v1::RankProgress::COMPUTE, v1::RankProgress::COLLECTIVE}) {
    v1::TraceEvent& event = *profile.add_events();
    event.set_phase(phase);
    event.set_begin_ns(phase == v1::RankProgress::COMPUTE ? 0 : 80);
    event.set_duration_ns(phase == v1::RankProgress::COMPUTE ? 80 : 20);
  }
  return rank;
}

TEST(ProfileJsonTest, HasTheFiguresOfTheCommand) {
  const nlohmann::json json =
      nlohmann::json::parse(ProfileJson("fashion-1", {Rank(0), Rank(1)}, {ServerCores{"a:1", 0.25}}));
  EXPECT_EQ(json["job_id"], "fashion-1");
  EXPECT_EQ(json["all"]["ranks"], 2);
  EXPECT_EQ(json["all"]["groups"], 1);
  const nlohmann::json& row = json["all"]["collectives"].at(0);
  EXPECT_EQ(row["operation"], "all-reduce");
  EXPECT_EQ(row["bytes_min"], 4);
  EXPECT_EQ(row["bytes_max"], 7) << "a bin of sizes up to the next power of two";
  EXPECT_EQ(row["calls"], 2);
  EXPECT_DOUBLE_EQ(row["step_share"], 0.2);
  EXPECT_EQ(row["algorithms"].at(0), "<script>\\x1b") << "a text of a rank is shown, and does nothing";
  EXPECT_DOUBLE_EQ(json["steps"].at(0)["compute_share"], 0.8);
  EXPECT_DOUBLE_EQ(json["steps"].at(0)["collective_share"], 0.2);
  EXPECT_EQ(json["servers"].dump(), R"([{"address":"a:1","cores":0.25}])");
}

class PageProfileTest : public CoordinatorFixture {
 protected:
  void SetUp() override {
    ProfileStoreOptions options;
    options.folder = folder_ + "/profiles";
    settings_.profiles = std::make_shared<ProfileStore>(*ProfileStore::Open(options));
    Restart();
  }

  void Keep(const std::string& id, uint32_t rank, const v1::RankProfile& profile) {
    const absl::Status kept = settings_.profiles->Put({id, 0, rank}, profile.SerializeAsString());
    ASSERT_TRUE(kept.ok()) << kept;
  }
};

// A job that has no profile yet is no error for the page. One that is not there is.
TEST_F(PageProfileTest, SaysWhyThereIsNone) {
  const std::string id = Submit();
  PageProfile page(coordinator_.get());
  const absl::StatusOr<std::string> made = page.Make(id);
  ASSERT_TRUE(made.ok()) << made.status();
  const nlohmann::json json = nlohmann::json::parse(*made);
  EXPECT_EQ(json["note"], "job " + id + " has no profile yet: it has one some seconds after its first step");
  EXPECT_EQ(json.count("all"), 0u);
  EXPECT_TRUE(absl::IsNotFound(page.Make("none-7").status()));
}

// The figures are those of all ranks whose profile is kept. Very large profiles are for the command.
TEST_F(PageProfileTest, ReadsWhatIsKept) {
  const std::string id = Submit();
  PageProfile page(coordinator_.get());
  for (const uint32_t rank : {0, 1}) Keep(id, rank, Rank(rank).profile());
  const absl::StatusOr<std::string> made = page.Make(id);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*made, ProfileJson(id, {Rank(0), Rank(1)}, {}));

  v1::RankProfile large;
  large.set_machine(std::string(PageProfile::kProfileBytesMax / 20, 'm'));
  for (uint32_t rank = 2; rank < 22; ++rank) Keep(id, rank, large);
  const absl::Status refused = page.Make(id).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(refused.message(), "the profile of 22 ranks is too large for this page; use `hooke profile " + id + "`");
}

}  // namespace
}  // namespace hooke
