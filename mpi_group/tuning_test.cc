#include "mpi_group/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hooke {
namespace {

using testing::HasSubstr;

// A tuning that is written and read back is the same, here with all default rules.
TEST(TuningTest, TextRoundTrip) {
  Tuning tuning;
  tuning.slot_bytes = uint64_t{128} << 10;
  tuning.between_nodes = Tuning::BetweenNodes::kMpi;
  tuning.rules = DefaultRules();
  TuningRule crowded;
  crowded.oversubscribed = true;
  crowded.algorithm = Algorithm::kTwoLevel;
  crowded.drivers = 3;
  tuning.rules.push_back(crowded);
  const absl::StatusOr<Tuning> read = ParseTuning(FormatTuning(tuning));
  ASSERT_EQ(read.status(), absl::OkStatus());
  EXPECT_EQ(read->slot_bytes, tuning.slot_bytes);
  EXPECT_EQ(read->between_nodes, tuning.between_nodes);
  EXPECT_EQ(read->rules, tuning.rules);
  EXPECT_EQ(ParseTuning(FormatTuning({}))->rules.size(), 0);
}

// A tuning file may leave out everything that has its default value.
TEST(TuningTest, WhatIsLeftOutIsTheDefault) {
  const absl::StatusOr<Tuning> tuning =
      ParseTuning(R"({"rules": [{"operation": "broadcast", "algorithm": "chain", "bytes_max": 100}]})");
  ASSERT_EQ(tuning.status(), absl::OkStatus());
  EXPECT_EQ(tuning->slot_bytes, Tuning().slot_bytes);
  ASSERT_EQ(tuning->rules.size(), 1);
  EXPECT_EQ(tuning->rules[0].operation, Operation::kBroadcast);
  EXPECT_EQ(tuning->rules[0].algorithm, Algorithm::kChain);
  EXPECT_EQ(tuning->rules[0].bytes_max, 100);
  EXPECT_EQ(tuning->rules[0].ranks_max, TuningRule::kAnyRanks);
}

// The error of ParseTuning names the mistake, and its rule if it is in one.
TEST(TuningTest, Mistakes) {
  const struct {
    const char* text;
    const char* message;
  } kTable[] = {
      {"{", "tuning: the text is not JSON"},
      {"[]", "tuning: is not an object"},
      {R"({"rules": {}})", "\"rules\" is not an array"},
      {R"({"slots": 1})", "unknown key \"slots\"; known are slot_bytes, between_nodes, rules"},
      {R"({"between_nodes": "tcp"})", "\"between_nodes\" is \"tcp\"; it is one of auto, mpi, sockets"},
      {R"({"slot_bytes": 5000})",
       "\"slot_bytes\" is 5000; it is a whole number from 4096 to 67108864, a multiple of 64"},
      {R"({"slot_bytes": -1})", "\"slot_bytes\" is -1"},
      {R"({"rules": [1]})", "tuning: rule 0: is not an object"},
      {R"({"rules": [{"operation": "reduce"}]})", "tuning: rule 0: has no \"algorithm\""},
      {R"({"rules": [{"operation": "sum", "algorithm": "ring"}]})",
       "tuning: rule 0: \"operation\" is \"sum\"; it is one of all-reduce, reduce, reduce-scatter, all-gather, "
       "broadcast, barrier"},
      {R"({"rules": [{"operation": "reduce", "algorithm": "ring"}]})",
       "there is no reduce by ring; there is binomial-tree, chain, chain-binomial, chain-chain, arena, staged, "
       "two-level"},
      {R"({"rules": [{"operation": "reduce", "algorithm": "nothing"}]})", "there is no reduce by nothing"},
      {R"({"rules": [{"operation": "reduce", "algorithm": "chain", "ranks_max": 0}]})", "\"ranks_max\" is 0"},
      {R"({"rules": [{"operation": "reduce", "algorithm": "chain", "chunk_bytes": 100}]})",
       "\"chunk_bytes\" is 100; it is a whole number from 64 to 1073741824, a multiple of 64"},
      {R"({"rules": [{"operation": "reduce", "algorithm": "chain", "oversubscribed": 1}]})", "it is true or false"},
      {R"({"rules": [{"operation": "reduce", "algorithm": "chain", "chunk": 64}]})", "unknown key \"chunk\""},
  };
  for (const auto& row : kTable) {
    const absl::Status status = ParseTuning(row.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message)) << row.text;
  }
}

}  // namespace
}  // namespace hooke
