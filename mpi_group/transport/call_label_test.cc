#include "mpi_group/transport/call_label.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hooke {
namespace {

CallLabel AllReduceLabel() { return {17, "all-reduce", 1000, DataType::kFloat32, ReduceOp::kSum}; }

// Each kind of call has a readable text.
TEST(CallLabelTest, Text) {
  EXPECT_EQ(AllReduceLabel().Text(), "call 17: all-reduce (sum) of 1000 float32");
  EXPECT_EQ((CallLabel{3, "broadcast", 5, DataType::kInt64, std::nullopt, 2}).Text(),
            "call 3: broadcast of 5 int64 with root 2");
  EXPECT_EQ((CallLabel{4, "barrier"}).Text(), "call 4: barrier");
  EXPECT_EQ((CallLabel{5, "shared allocation", 64}).Text(), "call 5: shared allocation of 64 bytes");
  EXPECT_EQ((CallLabel{6, "all-gather", 9, DataType::kFloat32, std::nullopt, -1, 0xab}).Text(),
            "call 6: all-gather of 9 float32, layout 00000000000000ab");
  CallLabel shared = AllReduceLabel();
  shared.shared = true;
  EXPECT_EQ(shared.Text(), "call 17: all-reduce (sum) of 1000 float32 in shared memory");
  EXPECT_EQ(CallLabel().Text(), "no call");
}

// Calls that differ in any one field have different fingerprints; the same call has the same one.
TEST(CallLabelTest, FingerprintTellsCallsApart) {
  std::vector<CallLabel> labels(9, AllReduceLabel());
  labels[1].number = 18;
  labels[2].operation = "reduce";
  labels[3].values = 999;
  labels[4].type = DataType::kInt32;
  labels[5].op = ReduceOp::kMean;
  labels[6].root = 0;
  labels[7].detail = 1;
  labels[8].shared = true;
  std::set<uint32_t> fingerprints;
  for (const CallLabel& label : labels) fingerprints.insert(label.Fingerprint());
  EXPECT_EQ(fingerprints.size(), labels.size());
  EXPECT_EQ(AllReduceLabel().Fingerprint(), labels[0].Fingerprint());
}

// In a job's sequence of calls neighbours have different fingerprints, so a skipped or repeated call is noticed.
TEST(CallLabelTest, NeighboursDiffer) {
  std::set<uint32_t> fingerprints;
  CallLabel label = AllReduceLabel();
  for (label.number = 1; label.number <= 1000; ++label.number) fingerprints.insert(label.Fingerprint());
  EXPECT_EQ(fingerprints.size(), 1000);
}

}  // namespace
}  // namespace hooke
