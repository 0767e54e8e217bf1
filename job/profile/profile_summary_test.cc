#include "job/profile/profile_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/trace/operation_text.h"

namespace hooke {
namespace {

using testing::ElementsAre;

struct Calls {
  v1::Operation operation = v1::ALL_REDUCE;
  uint64_t bytes = 4;
  bool fused = false;
  std::vector<uint64_t> times_ns;
};

// Counts calls like a rank's profile, in buckets of 1/16 of a power of two.
void AddCalls(const Calls& calls, v1::RankProfile& profile) {
  v1::CollectiveProfile* some = profile.add_collectives();
  some->set_operation(calls.operation);
  some->set_fused(calls.fused);
  some->set_bytes_min(calls.bytes);
  some->set_bytes_max(calls.bytes);
  some->set_bytes(calls.bytes * calls.times_ns.size());
  some->set_min_ns(*std::min_element(calls.times_ns.begin(), calls.times_ns.end()));
  some->set_max_ns(*std::max_element(calls.times_ns.begin(), calls.times_ns.end()));
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> buckets;
  for (const uint64_t ns : calls.times_ns) {
    some->set_time_ns(some->time_ns() + ns);
    const uint64_t width = ns < 32 ? 1 : uint64_t{1} << (63 - __builtin_clzll(ns) - 4);
    auto& [end, count] = buckets[ns / width * width];
    end = ns / width * width + width;
    ++count;
  }
  for (const auto& [begin, rest] : buckets) {
    some->add_bucket_begin_ns(begin);
    some->add_bucket_end_ns(rest.first);
    some->add_bucket_calls(rest.second);
  }
  some->set_step_ns(some->time_ns());
}

v1::ReadProfileResponse Rank(uint32_t group, uint32_t rank, const std::vector<Calls>& all, uint64_t step_ns = 1000000) {
  v1::ReadProfileResponse response;
  response.set_group(group);
  response.set_rank(rank);
  response.mutable_profile()->set_step_ns(step_ns);
  for (const Calls& calls : all) AddCalls(calls, *response.mutable_profile());
  return response;
}

// The summary of several ranks equals that of one rank with all their calls. Sums and extremes are exact. Quantiles are
// within 1/32.
TEST(ProfileSummaryTest, MergesLikeOneRankWithAllCalls) {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> time(10, 1.5);
  std::vector<v1::ReadProfileResponse> ranks;
  std::vector<uint64_t> all;
  for (uint32_t rank = 0; rank < 7; ++rank) {
    Calls calls;
    for (int i = 0; i < 1000 + 100 * static_cast<int>(rank); ++i) {
      calls.times_ns.push_back(static_cast<uint64_t>(time(random)) * (rank + 1));
    }
    all.insert(all.end(), calls.times_ns.begin(), calls.times_ns.end());
    ranks.push_back(Rank(rank / 2, rank % 2, {calls}));
  }
  const ProfileSummary summary = Summarize(ranks, ProfileSizes::kExact);
  EXPECT_EQ(summary.groups, 4u);
  EXPECT_EQ(summary.ranks, 7u);
  EXPECT_EQ(summary.step_ns, 7000000u);
  ASSERT_EQ(summary.rows.size(), 1u);
  const ProfileRow& row = summary.rows[0];
  std::sort(all.begin(), all.end());
  EXPECT_EQ(row.calls, all.size());
  EXPECT_EQ(row.bytes, 4 * all.size());
  EXPECT_EQ(row.time_ns, std::accumulate(all.begin(), all.end(), uint64_t{0}));
  EXPECT_EQ(row.min_ns, all.front());
  EXPECT_EQ(row.max_ns, all.back());
  for (double q : {0.0, 0.1, 0.5, 0.99, 1.0}) {
    const auto index = static_cast<size_t>(std::max(1.0, std::ceil(q * static_cast<double>(all.size())))) - 1;
    const auto exact = static_cast<double>(all[index]);
    EXPECT_NEAR(row.Quantile(q), exact, exact / 32 + 1) << q;
  }
}

// The order of the ranks does not matter.
TEST(ProfileSummaryTest, OrderDoesNotMatter) {
  std::vector<v1::ReadProfileResponse> ranks = {Rank(0, 0, {{v1::BARRIER, 0, false, {5, 9}}}),
                                                Rank(0, 1, {{v1::BARRIER, 0, false, {1, 70000}}})};
  const nlohmann::ordered_json json = ProfileToJson(Summarize(ranks, ProfileSizes::kBins));
  std::swap(ranks[0], ranks[1]);
  EXPECT_EQ(ProfileToJson(Summarize(ranks, ProfileSizes::kBins)), json);
}

// The sizes within one power of two share a row, or get one each. Different operations never share a row, nor do fused
// and unfused calls.
TEST(ProfileSummaryTest, BinsOrExactSizes) {
  const std::vector<v1::ReadProfileResponse> ranks = {Rank(0, 0,
                                                           {{v1::ALL_REDUCE, 1024, false, {10}},
                                                            {v1::ALL_REDUCE, 2047, false, {20}},
                                                            {v1::ALL_REDUCE, 2048, false, {30}},
                                                            {v1::ALL_REDUCE, 1024, true, {40}},
                                                            {v1::BROADCAST, 1024, false, {50}}})};
  const ProfileSummary bins = Summarize(ranks, ProfileSizes::kBins);
  std::vector<std::string> rows;
  for (const ProfileRow& row : bins.rows) {
    rows.push_back(absl::StrCat(OperationText(row.operation), " ", row.bytes_min, "-", row.bytes_max, " ", row.fused,
                                " ", row.calls));
  }
  EXPECT_THAT(rows, ElementsAre("all-reduce 1024-2047 0 2", "all-reduce 1024-2047 1 1", "all-reduce 2048-4095 0 1",
                                "broadcast 1024-2047 0 1"));
  EXPECT_EQ(Summarize(ranks, ProfileSizes::kExact).rows.size(), 5u);
}

// The summary as JSON has these names and values.
TEST(ProfileSummaryTest, Json) {
  const std::vector<v1::ReadProfileResponse> ranks = {Rank(3, 0, {{v1::ALL_GATHER, 1000, true, {4000, 6000}}})};
  const nlohmann::ordered_json json = ProfileToJson(Summarize(ranks, ProfileSizes::kExact));
  EXPECT_EQ(json["ranks"], 1);
  const nlohmann::ordered_json& row = json["collectives"].at(0);
  EXPECT_EQ(row["operation"], "all-gather");
  EXPECT_EQ(row["calls"], 2);
  EXPECT_EQ(row["fused"], true);
  EXPECT_DOUBLE_EQ(row["seconds"], 1e-5);
  EXPECT_DOUBLE_EQ(row["gb_per_s"], 0.2);
  EXPECT_DOUBLE_EQ(row["step_share"], 0.01);
}

// Absurd values from a rank do not end the program, and no text of a rank reaches a terminal unescaped.
TEST(ProfileSummaryTest, SurvivesNonsense) {
  v1::ReadProfileResponse rank = Rank(0, 0, {{v1::REDUCE, 8, false, {10, 20}}}, 0);
  v1::CollectiveProfile* some = rank.mutable_profile()->mutable_collectives(0);
  some->set_operation(static_cast<v1::Operation>(77));
  some->set_bytes_min(~uint64_t{0});
  some->set_bytes_max(~uint64_t{0});
  some->set_algorithm("\x1b[2J");
  some->add_bucket_calls(~uint64_t{0});
  rank.mutable_profile()->add_collectives();
  const nlohmann::ordered_json json = ProfileToJson(Summarize({rank}, ProfileSizes::kBins));
  ASSERT_EQ(json["collectives"].size(), 2u);
  EXPECT_EQ(json["collectives"][1]["operation"], "operation 77");
  EXPECT_EQ(json["collectives"][1]["step_share"], 0);
  EXPECT_THAT(Summarize({rank}, ProfileSizes::kBins).rows[1].algorithms, ElementsAre("\\x1b[2J"));
  EXPECT_EQ(ProfileToJson(Summarize({}, ProfileSizes::kBins))["ranks"], 0);
}

}  // namespace
}  // namespace hooke
