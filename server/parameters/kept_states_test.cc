#include "server/parameters/kept_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>
#include <zlib.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/parameters/in_memory_storage.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

uint32_t Checksum(const std::string& bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

class KeptStatesTest : public ::testing::Test {
 protected:
  KeptStatesTest() { Restart(); }

  void Restart() {
    KeptStates::Options options;
    options.storage = storage_;
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.job_bytes_max = 1000;
    states_ = KeptStates::Open(options).value();
  }

  absl::Status Keep(const KeptStateOwner& owner, const KeptStateId& id, const std::string& bytes,
                    const KeptStateId& keeps = {}) {
    auto writer = states_->Begin(owner, id, {bytes.size(), Checksum(bytes)});
    if (!writer.ok()) return writer.status();
    if (absl::Status status = (*writer)->Append(bytes); !status.ok()) return status;
    return (*writer)->Commit(keeps);
  }

  absl::StatusOr<std::string> Read(const KeptStateOwner& owner, const KeptStateId& id) {
    auto reader = states_->Read(owner, id);
    if (!reader.ok()) return reader.status();
    std::string all;
    while (true) {
      absl::StatusOr<std::string> bytes = (*reader)->Read(3);
      if (!bytes.ok() || bytes->empty()) return bytes.ok() ? absl::StatusOr<std::string>(all) : bytes;
      all += *bytes;
    }
  }

  const std::shared_ptr<InMemoryStorage> storage_ = std::make_shared<InMemoryStorage>();
  std::unique_ptr<KeptStates> states_;
  const KeptStateOwner owner_ = {"job-1", 2, 5};
};

// After Commit, a state is listed and read back unchanged, also after a restart of the server.
TEST_F(KeptStatesTest, KeepsAndReads) {
  ASSERT_TRUE(Keep(owner_, {1, 70}, "momentum").ok());
  ASSERT_TRUE(Keep({"job-1", 2, 4}, {1, 70}, "").ok());
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-1.2-4.0000000001.000000000000000070.state",
                                                    "job-1.2-5.0000000001.000000000000000070.state"));
  Restart();
  EXPECT_THAT(states_->List(owner_), ElementsAre(KeptStateId{1, 70}));
  EXPECT_EQ(Read(owner_, {1, 70}).value(), "momentum");
  EXPECT_EQ(Read({"job-1", 2, 4}, {1, 70}).value(), "");
  EXPECT_EQ(Read(owner_, {1, 71}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(states_->bytes("job-1"), 2 * 40u + 8);
}

// The bytes of a state's file are those of the example in docs/snapshot.md.
TEST_F(KeptStatesTest, WritesTheDocumentedBytes) {
  ASSERT_TRUE(Keep({"job-1", 0, 1}, {2, 16}, "abc").ok());
  EXPECT_EQ(absl::BytesToHexString(storage_->Get("job-1.0-1.0000000002.000000000000000016.state")),
            "686f6f6b6573740a"
            "01000000"
            "02000000"
            "1000000000000000"
            "0300000000000000"
            "c2412435"
            "244590be"
            "616263");
}

// The newest state stays, and so does the state that Commit was told to keep. A later start's state is newer, whatever
// its step.
TEST_F(KeptStatesTest, RemovesOldStates) {
  ASSERT_TRUE(Keep(owner_, {1, 10}, "a").ok());
  ASSERT_TRUE(Keep(owner_, {1, 20}, "b", {1, 10}).ok());
  ASSERT_TRUE(Keep(owner_, {1, 30}, "c", {1, 10}).ok());
  EXPECT_THAT(states_->List(owner_), ElementsAre(KeptStateId{1, 30}, KeptStateId{1, 10}));
  ASSERT_TRUE(Keep(owner_, {2, 15}, "d", {1, 10}).ok());
  EXPECT_THAT(states_->List(owner_), ElementsAre(KeptStateId{2, 15}, KeptStateId{1, 10}));
  ASSERT_TRUE(Keep(owner_, {2, 25}, "e", {2, 15}).ok());
  EXPECT_THAT(states_->List(owner_), ElementsAre(KeptStateId{2, 25}, KeptStateId{2, 15}));
}

// If a state of an earlier start comes late, it removes no state of a later start.
TEST_F(KeptStatesTest, ALateOldStateRemovesNoNewerOne) {
  ASSERT_TRUE(Keep(owner_, {1, 10}, "a").ok());
  ASSERT_TRUE(Keep(owner_, {2, 15}, "b", {1, 10}).ok());
  ASSERT_TRUE(Keep(owner_, {1, 20}, "late", {1, 10}).ok());
  const std::vector<KeptStateId> left = states_->List(owner_);
  ASSERT_FALSE(left.empty());
  EXPECT_TRUE(left.front() == (KeptStateId{2, 15}));
}

// If the bytes differ from those announced, they are not kept, and the previous state stays.
TEST_F(KeptStatesTest, RefusesOtherBytes) {
  ASSERT_TRUE(Keep(owner_, {1, 10}, "a").ok());
  {
    auto writer = states_->Begin(owner_, {1, 20}, {4, Checksum("abcd")}).value();
    ASSERT_TRUE(writer->Append("abXd").ok());
    EXPECT_EQ(writer->Commit({1, 10}).code(), absl::StatusCode::kDataLoss);
  }
  {
    auto writer = states_->Begin(owner_, {1, 20}, {4, Checksum("abcd")}).value();
    ASSERT_TRUE(writer->Append("abc").ok());
    EXPECT_EQ(writer->Commit({1, 10}).code(), absl::StatusCode::kDataLoss);
  }
  {
    auto writer = states_->Begin(owner_, {1, 20}, {4, Checksum("abcd")}).value();
    EXPECT_EQ(writer->Append("abcde").code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_THAT(states_->List(owner_), ElementsAre(KeptStateId{1, 10}));
  EXPECT_EQ(Read(owner_, {1, 10}).value(), "a");
}

// Each flipped bit and each cut of a file is found.
TEST_F(KeptStatesTest, FindsDamage) {
  ASSERT_TRUE(Keep(owner_, {1, 10}, "momentum").ok());
  const std::string name = KeptStateName(owner_, {1, 10});
  const std::string good = storage_->Get(name);
  for (uint64_t bit = 0; bit < good.size() * 8; ++bit) {
    storage_->FlipBit(name, bit);
    EXPECT_EQ(Read(owner_, {1, 10}).status().code(), absl::StatusCode::kDataLoss) << bit;
    storage_->Put(name, good);
  }
  for (uint64_t bytes = 0; bytes < good.size(); ++bytes) {
    storage_->Truncate(name, bytes);
    EXPECT_EQ(Read(owner_, {1, 10}).status().code(), absl::StatusCode::kDataLoss) << bytes;
    storage_->Put(name, good);
  }
}

// A job's states have a limit of bytes, which includes states that are being written. The error has the numbers.
TEST_F(KeptStatesTest, HasABound) {
  ASSERT_TRUE(Keep(owner_, {1, 10}, std::string(400, 'a')).ok());
  auto writer = states_->Begin({"job-1", 0, 0}, {1, 10}, {400, 0}).value();
  const absl::Status full = Keep({"job-1", 0, 1}, {1, 10}, std::string(100, 'b'));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("the states of job job-1 take 880 of the 1000 bytes"));
  EXPECT_TRUE(Keep({"job-2", 0, 1}, {1, 10}, std::string(100, 'b')).ok()) << "each job has its own room";
  writer.reset();
  EXPECT_TRUE(Keep({"job-1", 0, 1}, {1, 10}, std::string(100, 'b')).ok());
  EXPECT_EQ(states_->Begin(owner_, {1, 1}, {uint64_t{1} << 41, 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

// A state that is being written is refused on a second stream.
TEST_F(KeptStatesTest, OneWriterForEachState) {
  auto writer = states_->Begin(owner_, {1, 10}, {1, Checksum("a")}).value();
  EXPECT_EQ(Keep(owner_, {1, 10}, "a").code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(writer->Append("a").ok());
  EXPECT_TRUE(writer->Commit({}).ok());
}

// If the disk is full, the error says so, and no part of the state stays.
TEST_F(KeptStatesTest, FullDisk) {
  storage_->SetFreeBytes(50);
  EXPECT_EQ(Keep(owner_, {1, 10}, std::string(100, 'a')).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(states_->List(owner_), IsEmpty());
  EXPECT_THAT(storage_->List().value(), IsEmpty());
}

// RemoveJob removes all states of the job. A state that is being written meanwhile is not kept either.
TEST_F(KeptStatesTest, RemovesAJob) {
  ASSERT_TRUE(Keep(owner_, {1, 10}, "a").ok());
  ASSERT_TRUE(Keep({"job-2", 0, 0}, {1, 10}, "b").ok());
  auto writer = states_->Begin(owner_, {1, 20}, {1, Checksum("c")}).value();
  ASSERT_TRUE(states_->RemoveJob("job-1").ok());
  ASSERT_TRUE(writer->Append("c").ok());
  EXPECT_EQ(writer->Commit({}).code(), absl::StatusCode::kFailedPrecondition);
  writer.reset();
  EXPECT_THAT(storage_->List().value(), ElementsAre("job-2.0-0.0000000001.000000000000000010.state"));
  EXPECT_THAT(states_->jobs(), ElementsAre("job-2"));
}

}  // namespace
}  // namespace hooke
