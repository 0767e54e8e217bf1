#include "client/commands/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr char kTuned[] = R"({"cells": 2, "cells_planned": 9, "rules": 1, "tuning": "{}\n", "measurements": [
  {"operation": "all-reduce", "values": "private", "bytes": 4, "algorithm": "staged", "chunk_bytes": 65536,
   "drivers": 0, "default": true, "median_us": 1.04, "calls": 9},
  {"operation": "all-reduce", "values": "private", "bytes": 4, "algorithm": "ring", "chunk_bytes": 262144,
   "drivers": 0, "default": false, "median_us": 0.52, "calls": 9},
  {"operation": "reduce", "values": "arena", "bytes": 1048576, "algorithm": "two-level", "chunk_bytes": 100,
   "drivers": 3, "default": true, "median_us": 700, "calls": 9}]})";

// The table has a line for each size, with the default beside the fastest choice. The notes say how much was left out.
TEST(BenchReportTest, Tuning) {
  const absl::StatusOr<TuningReport> report = ReportTuning(kTuned);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->tuning, "{}\n");
  EXPECT_EQ(report->table,
            "OPERATION   VALUES   SIZE   DEFAULT             US     FASTEST             US     GAIN\n"
            "all-reduce  private  4 B    staged 64 KiB       1.0    ring 256 KiB        0.5    2.00x\n"
            "reduce      arena    1 MiB  two-level 100 B x3  700.0  two-level 100 B x3  700.0  1.00x\n");
  EXPECT_THAT(report->notes, HasSubstr("1 rule: "));
  EXPECT_THAT(report->notes, HasSubstr("time was up after 2 of 9 lines"));
}

// The table has ranges of sizes with the reasons for their choices; the last range has no end. A line names the kind of
// values if it holds for one kind only.
TEST(BenchReportTest, Explanation) {
  const absl::StatusOr<ExplanationReport> report = ReportExplanation(
      R"({"choices": [{"operation": "reduce", "values": "arena", "bytes_from": 4, "bytes_to": 4096,
                       "algorithm": "staged", "chunk_bytes": 65536, "reason": "because"},
                      {"operation": "reduce", "values": "arena", "bytes_from": 8192,
                       "algorithm": "arena", "chunk_bytes": 65536, "reason": "why not"},
                      {"operation": "reduce", "values": "arena", "of": "16-bit sums", "bytes_from": 4,
                       "algorithm": "ring", "chunk_bytes": 65536, "reason": "rounded once"}]})");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->table,
            "OPERATION            VALUES  FROM   TO     ALGORITHM  CHUNK   REASON\n"
            "reduce               arena   4 B    4 KiB  staged     64 KiB  because\n"
            "reduce               arena   8 KiB  any    arena      64 KiB  why not\n"
            "reduce, 16-bit sums  arena   4 B    any    ring       64 KiB  rounded once\n");
}

// Below a two-level choice stands the algorithm that runs between the nodes. The line has the number of drivers, the
// ranks of a node that talk to other nodes.
TEST(BenchReportTest, ExplanationNamesTheAlgorithmBetweenNodes) {
  const absl::StatusOr<ExplanationReport> report = ReportExplanation(
      R"({"choices": [{"operation": "reduce", "values": "arena", "bytes_from": 4, "bytes_to": 4096,
                       "algorithm": "two-level", "chunk_bytes": 65536, "reason": "because", "drivers": 1,
                       "between": {"algorithm": "chain", "chunk_bytes": 4096, "reason": "why not"}},
                      {"operation": "reduce", "values": "arena", "bytes_from": 8192,
                       "algorithm": "two-level", "chunk_bytes": 65536, "reason": "because", "drivers": 2,
                       "between": {"algorithm": "ring", "chunk_bytes": 4096, "reason": "why not"}}]})");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->table,
            "OPERATION  VALUES  FROM   TO              ALGORITHM  CHUNK   REASON\n"
            "reduce     arena   4 B    4 KiB           two-level  64 KiB  because\n"
            "                          between nodes:  chain      4 KiB   1 driver per node; why not\n"
            "reduce     arena   8 KiB  any             two-level  64 KiB  because\n"
            "                          between nodes:  ring       4 KiB   2 drivers per node; why not\n");
}

// Output of another version is reported as an error and does not end the program.
TEST(BenchReportTest, RefusesWhatItCannotRead) {
  for (const char* text : {"", "{", "{}", "[]", R"({"tuning": 3})", R"({"choices": [{"operation": 1}]})",
                           R"({"tuning": "", "measurements": [{}], "rules": 0, "cells": 1, "cells_planned": 1})"}) {
    EXPECT_THAT(std::string(ReportTuning(text).status().message()), HasSubstr("are both of one version?")) << text;
    EXPECT_THAT(std::string(ReportExplanation(text).status().message()), HasSubstr("are both of one version?")) << text;
  }
}

}  // namespace
}  // namespace hooke
