#include "server/parameters/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr char kName[] = "a.snapshot";

// Two blocks of 2 and 1 values, with one exchange applied by group 1.
std::unique_ptr<Shard> MakeTestShard() {
  TestCenter center;
  center.values = 3;
  auto shard = Shard::Create(PlanShard(MakeAttachRequest(center), 2).value()).value();
  EXPECT_TRUE(shard->Attach(absl::UnixEpoch(), {}, absl::Seconds(20)).ok());
  EXPECT_TRUE(shard->WriteInitial(absl::UnixEpoch(), {}, 0, {1.0f, 2.0f}).ok());
  EXPECT_TRUE(shard->WriteInitial(absl::UnixEpoch(), {}, 2, {3.0f}).ok());
  EXPECT_TRUE(shard->CompleteInitialize({}).ok());
  std::vector<float> answer(1);
  EXPECT_TRUE(shard->ApplyBlock({{1, 0, 2}, 16, 2}, {7.0f}, absl::MakeSpan(answer)).ok());
  return shard;
}

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() { EXPECT_TRUE(WriteSnapshot(*shard_, false, *storage_.Create(kName).value()).ok()); }

  absl::Status Verify() {
    absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(storage_.Open(kName).value());
    return reader.ok() ? VerifySnapshot(*std::move(reader)) : reader.status();
  }

  const std::unique_ptr<Shard> shard_ = MakeTestShard();
  InMemoryStorage storage_;
};

// What was written comes back: values, what each group last did, incarnations, version.
TEST_F(SnapshotTest, RestoresTheShard) {
  const auto shard = ReadShard(SnapshotReader::Open(storage_.Open(kName).value()).value()).value();
  EXPECT_TRUE(shard->initialized());
  EXPECT_EQ(shard->updates(), 1u);
  EXPECT_EQ(shard->Incarnations(), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(shard->plan().job_id, "job-1");
  EXPECT_TRUE(ComparePlans(shard->plan(), shard_->plan()).ok());
  ASSERT_EQ(shard->blocks(), 2u);
  EXPECT_EQ(shard->CopyBlock(0).values, (std::vector<float>{1, 2}));
  EXPECT_EQ(shard->CopyBlock(1).values, (std::vector<float>{4}));
  EXPECT_EQ(shard->CopyBlock(1).applied, (std::vector<ExchangeId>{{0, 0}, {2, 16}}));
}

// The bytes are those of the worked example in docs/snapshot.md.
TEST_F(SnapshotTest, WorkedExample) {
  EXPECT_EQ(absl::BytesToHexString(storage_.Get(kName)),
            "686f6f6b65736e0a0100000028000000ac000000000000000200000000000000010000000000000000000000"
            "12688114"
            "0a070a056a6f622d311211080111000000000000d03f1802200130011a0a0a080a017710011a0103"
            "0fc39112"
            "0100000002000000"
            "7c178103"
            "000000000000000000000000000000000000000000000000"
            "0000803f00000040"
            "b22f1752"
            "000000000000000000000000020000001000000000000000"
            "00008040"
            "ad669746");
}

// A file cut at any byte, or with anything behind its end, is refused.
TEST_F(SnapshotTest, RefusesAnyOtherLength) {
  const std::string good = storage_.Get(kName);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    storage_.Put(kName, good.substr(0, bytes));
    const absl::Status status = Verify();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << bytes;
    ASSERT_THAT(std::string(status.message()), HasSubstr("cut short")) << bytes;
  }
  storage_.Put(kName, good + "x");
  EXPECT_EQ(Verify().message(), "cut short or grown: 173 bytes instead of 172");
}

// A single flipped bit anywhere is refused.
TEST_F(SnapshotTest, RefusesAnyFlippedBit) {
  const std::string good = storage_.Get(kName);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    storage_.Put(kName, good);
    storage_.FlipBit(kName, bit);
    ASSERT_EQ(Verify().code(), absl::StatusCode::kDataLoss) << "bit " << bit;
  }
  storage_.Put(kName, good);
  storage_.FlipBit(kName, 8 * (good.size() - 6));  // In the last block's values.
  EXPECT_THAT(std::string(Verify().message()), HasSubstr("checksum of block 1 at byte "));
  storage_.Put(kName, good);
  EXPECT_TRUE(Verify().ok());
}

// A disk that is full while the snapshot is written is an error, and no file.
TEST_F(SnapshotTest, FullDisk) {
  for (uint64_t free_bytes = 0; free_bytes < 172; free_bytes += 11) {
    InMemoryStorage storage;
    storage.SetFreeBytes(free_bytes);
    EXPECT_EQ(WriteSnapshot(*shard_, false, *storage.Create(kName).value()).code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(storage.List().value().empty());
  }
}

// A file that is something else is refused for what it is.
TEST_F(SnapshotTest, RefusesOtherFiles) {
  storage_.Put(kName, "");
  EXPECT_EQ(Verify().message(), "cut short at byte 0, in the prefix");
  storage_.Put(kName, std::string(1000, '\0'));
  EXPECT_EQ(Verify().code(), absl::StatusCode::kDataLoss);
}

// The mark of an ended job's last snapshot comes back.
TEST_F(SnapshotTest, Sealed) {
  EXPECT_FALSE(SnapshotReader::Open(storage_.Open(kName).value())->sealed());
  EXPECT_TRUE(WriteSnapshot(*shard_, true, *storage_.Create(kName).value()).ok());
  EXPECT_TRUE(SnapshotReader::Open(storage_.Open(kName).value())->sealed());
}

}  // namespace
}  // namespace hooke
