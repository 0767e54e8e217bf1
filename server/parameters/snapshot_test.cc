#include "server/parameters/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "proto/job.pb.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr char kName[] = "a.snapshot";

// Makes a shard with blocks of 2 and 1 values, to which group 1 has applied one exchange.
std::unique_ptr<Shard> MakeTestShard() {
  TestCenter center;
  center.values = 3;
  center.job_key = "";
  auto shard = Shard::Create(PlanShard(MakeAttachRequest(center), 2).value()).value();
  EXPECT_TRUE(shard->Attach(absl::UnixEpoch(), {}, absl::Seconds(20)).ok());
  EXPECT_TRUE(shard->WriteInitial(absl::UnixEpoch(), {}, 0, {1.0f, 2.0f}).ok());
  EXPECT_TRUE(shard->WriteInitial(absl::UnixEpoch(), {}, 2, {3.0f}).ok());
  EXPECT_TRUE(shard->CompleteInitialize({}).ok());
  EXPECT_TRUE(shard->Attach(absl::UnixEpoch(), {1, 0, 2}, absl::Seconds(20)).ok());
  std::vector<float> answer(1);
  EXPECT_TRUE(shard->ApplyBlock({{1, 0, 2}, 16, 2}, {7.0f}, absl::MakeSpan(answer)).ok());
  return shard;
}

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() { EXPECT_TRUE(WriteSnapshot(*shard_, false, *storage_.Create(kName).value()).ok()); }

  absl::Status Verify() {
    absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(storage_.Open(kName).value());
    return reader.ok() ? VerifySnapshot(*std::move(reader), [] { return false; }) : reader.status();
  }

  const std::unique_ptr<Shard> shard_ = MakeTestShard();
  InMemoryStorage storage_;
};

// A snapshot restores what was written: values, each group's last exchange, incarnations and version.
TEST_F(SnapshotTest, RestoresTheShard) {
  const auto shard = ReadShard(SnapshotReader::Open(storage_.Open(kName).value()).value()).value();
  EXPECT_TRUE(shard->initialized());
  EXPECT_EQ(shard->updates(), 1u);
  EXPECT_EQ(shard->CopyGroups().incarnations, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(shard->plan().job_id, "job-1");
  EXPECT_TRUE(ComparePlans(shard->plan(), shard_->plan()).ok());
  ASSERT_EQ(shard->blocks(), 2u);
  EXPECT_EQ(shard->CopyBlock(0).values, (std::vector<float>{1, 2}));
  EXPECT_EQ(shard->CopyBlock(1).values, (std::vector<float>{4}));
  EXPECT_EQ(shard->CopyBlock(1).applied, (std::vector<ExchangeId>{{0, 0}, {2, 16}}));
}

// The description of the model is kept. A shard that an older program wrote has none.
TEST(Snapshot, KeepsTheModelsDescription) {
  for (const bool described : {true, false}) {
    v1::AttachRequest request = MakeAttachRequest({});
    if (described) {
      v1::ModelDescription& model = *request.mutable_layout()->mutable_model();
      model.set_architecture("mlp");
      model.set_architecture_version(1);
      model.add_input_shape(784);
      model.set_input_type("uint8");
      model.set_input_scale(255);
      model.set_mean(0.1);
      model.set_deviation(0.2);
      model.set_classes(10);
    }
    auto shard = Shard::Create(PlanShard(request, 2).value()).value();
    ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {}, absl::Seconds(20)).ok());
    ASSERT_TRUE(shard->CompleteInitialize({}).ok());
    InMemoryStorage storage;
    ASSERT_TRUE(WriteSnapshot(*shard, false, *storage.Create(kName).value()).ok());
    const auto restored = ReadShard(SnapshotReader::Open(storage.Open(kName).value()).value()).value();
    EXPECT_EQ(restored->plan().layout.SerializeAsString(), request.layout().SerializeAsString());
    // Groups with and without a description attach to the restored shard, because a program may be replaced while a job
    // waits.
    EXPECT_TRUE(ComparePlans(restored->plan(), PlanShard(MakeAttachRequest({}), 2).value()).ok());
    EXPECT_TRUE(ComparePlans(restored->plan(), PlanShard(request, 2).value()).ok());
  }
}

// The rule's state comes back with the values: a center that steps with momentum goes on as if nothing had happened.
TEST(Snapshot, KeepsTheRulesState) {
  TestCenter center;
  center.values = 3;
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::ASYNC, 0.1);
  v1::JobSpecForShard& job = *request.mutable_job();
  for (const auto optimizer : {v1::OptimizerSpec::SGD, v1::OptimizerSpec::ADAM}) {
    job.mutable_optimizer()->set_name(optimizer);
    job.mutable_optimizer()->set_momentum(optimizer == v1::OptimizerSpec::SGD ? 0.9 : 0);
    job.mutable_optimizer()->set_beta1(0.9);
    job.mutable_optimizer()->set_beta2(0.99);
    job.mutable_optimizer()->set_epsilon(1e-8);
    auto shard = Shard::Create(PlanShard(request, 2).value()).value();
    ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {}, absl::Seconds(20)).ok());
    ASSERT_TRUE(shard->CompleteInitialize({}).ok());
    std::vector<float> answer(2), restored_answer(2);
    for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
      ASSERT_TRUE(shard->ApplyBlock({{}, sequence, 0}, {1.0f, -2.0f}, absl::MakeSpan(answer)).ok());
    }
    InMemoryStorage storage;
    ASSERT_TRUE(WriteSnapshot(*shard, false, *storage.Create(kName).value()).ok());
    const auto restored = ReadShard(SnapshotReader::Open(storage.Open(kName).value()).value()).value();
    ASSERT_TRUE(shard->ApplyBlock({{}, 4, 0}, {0.5f, 0.5f}, absl::MakeSpan(answer)).ok());
    ASSERT_TRUE(restored->ApplyBlock({{}, 4, 0}, {0.5f, 0.5f}, absl::MakeSpan(restored_answer)).ok());
    EXPECT_EQ(restored_answer, answer);
    EXPECT_EQ(restored->CopyBlock(0).state, shard->CopyBlock(0).state);
    EXPECT_EQ(restored->CopyBlock(0).updates, 4u);
    EXPECT_EQ(restored->CopyBlock(1).updates, 0u);
  }
}

// A server that is started again knows which groups have ended, and whether the job is to stop. A group that has
// started again since its end is awaited.
TEST_F(SnapshotTest, KeepsTheEndsOfGroups) {
  const uint64_t updates = shard_->updates();
  ASSERT_TRUE(shard_->EndGroup({1, 0, 2}, true).ok());
  ASSERT_TRUE(shard_->EndGroup({1, 0, 2}, true).ok());
  EXPECT_EQ(shard_->updates(), updates + 1) << "a snapshot is due once";
  ASSERT_TRUE(WriteSnapshot(*shard_, false, *storage_.Create(kName).value()).ok());
  const auto shard = ReadShard(SnapshotReader::Open(storage_.Open(kName).value()).value()).value();
  EXPECT_EQ(shard->CopyGroups().ended, (std::vector<uint32_t>{0, 2}));
  EXPECT_TRUE(shard->TellPace(absl::UnixEpoch(), {0, 0, 1}, 0)->stops);
  EXPECT_EQ(shard->updates(), updates + 1);
}

// A server that is started again knows that the generation has ended. Groups that had attached keep their numbers.
TEST_F(SnapshotTest, KeepsTheEndOfAGeneration) {
  shard_->EndGeneration(5);
  ASSERT_TRUE(WriteSnapshot(*shard_, false, *storage_.Create(kName).value()).ok());
  const auto shard = ReadShard(SnapshotReader::Open(storage_.Open(kName).value()).value()).value();
  EXPECT_EQ(shard->CopyGroups().successor, 5u);
  EXPECT_EQ(shard->CopyGroups().incarnations, (std::vector<uint32_t>{1, 2}));
  EXPECT_TRUE(shard->closed());
  EXPECT_EQ(shard->first_incarnation(), 5u);
  EXPECT_EQ(shard->updates(), shard_->updates());
}

// A file of version 3, which had no successor, is still read. If its generation had ended, the incarnations say so.
TEST_F(SnapshotTest, ReadsVersionThree) {
  storage_.Put(kName, absl::HexStringToBytes(
                          "686f6f6b65736e0a0300000028000000c8000000000000000200000000000000010000000000000000000000"
                          "edd706b8"
                          "0a070a056a6f622d311211080111000000000000d03f1802200130011a0a0a080a017710011a0103"
                          "0fc39112"
                          "0100000002000000000000000000000000000000"
                          "a88512ed"
                          "0000000000000000000000000000000000000000000000000000000000000000"
                          "0000803f00000040"
                          "ae47f1a2"
                          "0000000000000000000000000200000010000000000000000100000000000000"
                          "00008040"
                          "4b40b185"));
  const auto shard = ReadShard(SnapshotReader::Open(storage_.Open(kName).value()).value()).value();
  EXPECT_EQ(shard->CopyGroups().incarnations, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(shard->CopyGroups().successor, 0u);
  EXPECT_FALSE(shard->closed());
  EXPECT_EQ(shard->CopyBlock(1).values, (std::vector<float>{4}));
}

// A file of version 2, which had only the incarnations of groups, is still read.
TEST_F(SnapshotTest, ReadsVersionTwo) {
  storage_.Put(kName,
               absl::HexStringToBytes("686f6f6b65736e0a0200000028000000bc000000000000000200000000000000010000000000"
                                      "0000000000003cc23e6b"
                                      "0a070a056a6f622d311211080111000000000000d03f1802200130011a0a0a080a0177"
                                      "10011a01030fc39112"
                                      "01000000020000007c178103"
                                      "0000000000000000000000000000000000000000000000000000000000000000"
                                      "0000803f00000040ae47f1a2"
                                      "0000000000000000000000000200000010000000000000000100000000000000"
                                      "000080404b40b185"));
  const auto shard = ReadShard(SnapshotReader::Open(storage_.Open(kName).value()).value()).value();
  EXPECT_EQ(shard->CopyGroups().incarnations, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(shard->CopyGroups().ended, (std::vector<uint32_t>{0, 0}));
  EXPECT_FALSE(shard->CopyGroups().stop);
  EXPECT_EQ(shard->CopyBlock(1).values, (std::vector<float>{4}));
}

// A file of an older format is refused, and the message says what to do.
TEST_F(SnapshotTest, RefusesOlderFormats) {
  std::string former = storage_.Get(kName).substr(0, 44);
  former[8] = 1;
  const uint32_t checksum = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(former.data()), 44));
  former.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  storage_.Put(kName, former);
  EXPECT_EQ(Verify().message(),
            "at byte 8: format version 1; this program reads 2 to 4: finish or export the job with the program that "
            "wrote it");
}

// The bytes are those of the worked example in docs/snapshot.md.
TEST_F(SnapshotTest, WorkedExample) {
  EXPECT_EQ(absl::BytesToHexString(storage_.Get(kName)),
            "686f6f6b65736e0a0400000028000000cc000000000000000200000000000000010000000000000000000000"
            "f00061e2"
            "0a070a056a6f622d311211080111000000000000d03f1802200130011a0a0a080a017710011a0103"
            "0fc39112"
            "010000000200000000000000000000000000000000000000"
            "8bd92ae8"
            "0000000000000000000000000000000000000000000000000000000000000000"
            "0000803f00000040"
            "ae47f1a2"
            "0000000000000000000000000200000010000000000000000100000000000000"
            "00008040"
            "4b40b185");
}

// A file that is cut at any byte, or has more bytes after its end, is refused.
TEST_F(SnapshotTest, RefusesAnyOtherLength) {
  const std::string good = storage_.Get(kName);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    storage_.Put(kName, good.substr(0, bytes));
    const absl::Status status = Verify();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << bytes;
    ASSERT_THAT(std::string(status.message()), HasSubstr("cut short")) << bytes;
  }
  storage_.Put(kName, good + "x");
  EXPECT_EQ(Verify().message(), "cut short or grown: 205 bytes instead of 204");
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
  storage_.FlipBit(kName, 8 * (good.size() - 6));  // A bit of the last block's values.
  EXPECT_THAT(std::string(Verify().message()), HasSubstr("checksum of block 1 at byte "));
  storage_.Put(kName, good);
  EXPECT_TRUE(Verify().ok());
}

// Contents that no server writes are refused although their checksum is right.
TEST_F(SnapshotTest, RefusesWhatNoServerWrites) {
  const std::string good = storage_.Get(kName);
  // Changes bytes of the section that begins at `start` and has `bytes` bytes before its checksum.
  const auto verify_with = [&](size_t start, size_t bytes, size_t at, const std::string& to) {
    std::string changed = good;
    changed.replace(at, to.size(), to);
    const auto checksum =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(&changed[start]), static_cast<uInt>(bytes)));
    std::memcpy(&changed[start + bytes], &checksum, sizeof checksum);
    storage_.Put(kName, changed);
    return Verify();
  };
  const size_t block = good.size() - 40;  // The last block has two exchanges, the version and a value.
  ASSERT_TRUE(verify_with(block, 36, good.size() - 8, std::string(4, '\0')).ok());
  EXPECT_EQ(verify_with(92, 24, 108, "\2"),
            absl::DataLossError("at byte 108: stop is 2; 0 and 1 are allowed: no server wrote this"));
  EXPECT_EQ(verify_with(0, 44, 40, "\7"),
            absl::DataLossError("at byte 40: sealed is 7; 0 and 1 are allowed: no server wrote this"));
  for (const std::string& value : {std::string("\0\0\xc0\x7f", 4), std::string("\0\0\x80\xff", 4)}) {
    EXPECT_EQ(verify_with(block, 36, good.size() - 8, value),
              absl::DataLossError("block 1 has a value that is infinite or not a number: no server writes such"));
  }
}

// If the disk fills up while the snapshot is written, the result is an error and no file.
TEST_F(SnapshotTest, FullDisk) {
  for (uint64_t free_bytes = 0; free_bytes < 200; free_bytes += 11) {
    InMemoryStorage storage;
    storage.SetFreeBytes(free_bytes);
    EXPECT_EQ(WriteSnapshot(*shard_, false, *storage.Create(kName).value()).code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(storage.List().value().empty());
  }
}

// A file that is no snapshot is refused, and the message says so.
TEST_F(SnapshotTest, RefusesOtherFiles) {
  storage_.Put(kName, "");
  EXPECT_EQ(Verify().message(), "cut short at byte 0, in the prefix");
  storage_.Put(kName, std::string(1000, '\0'));
  EXPECT_EQ(Verify().code(), absl::StatusCode::kDataLoss);
}

// A snapshot restores whether it is the last one of an ended job.
TEST_F(SnapshotTest, Sealed) {
  EXPECT_FALSE(SnapshotReader::Open(storage_.Open(kName).value())->sealed());
  EXPECT_TRUE(WriteSnapshot(*shard_, true, *storage_.Create(kName).value()).ok());
  EXPECT_TRUE(SnapshotReader::Open(storage_.Open(kName).value())->sealed());
}

}  // namespace
}  // namespace hooke
