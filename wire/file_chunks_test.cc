// The stream of files: what is sent is taken as it was, and every break of its rules is named.

#include "wire/file_chunks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

std::vector<v1::FileChunk> ChunksOf(const std::string& bytes) {
  std::vector<v1::FileChunk> chunks;
  EXPECT_TRUE(SendContent(bytes, [&](const v1::FileChunk& chunk) {
                chunks.push_back(chunk);
                return absl::OkStatus();
              }).ok());
  return chunks;
}

// The digest of "abc" is the one in the SHA-256 standard. Hashing it in pieces gives the same digest.
TEST(Sha256Test, HasTheValueOfTheStandard) {
  EXPECT_EQ(absl::BytesToHexString(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 sum;
  sum.Add("a");
  sum.Add("bc");
  EXPECT_EQ(sum.Finish(), Sha256Of("abc"));
  EXPECT_EQ(sum.Finish(), Sha256Of(""));
}

// A digest is accepted only in the form that absl::BytesToHexString gives: 64 lower-case hexadecimal digits.
TEST(Sha256Test, ReadsDigits) {
  const std::string digest = Sha256Of("abc");
  const std::string hex = absl::BytesToHexString(digest);
  EXPECT_EQ(Sha256OfHex(hex), digest);
  for (const std::string& wrong :
       {hex.substr(1), hex + "0", "BA" + hex.substr(2), "zz" + hex.substr(2), std::string()}) {
    EXPECT_EQ(Sha256OfHex(wrong), "") << wrong;
  }
}

// Contents of every size class arrive as they were, one after another on one stream.
TEST(FileChunksTest, ContentsArriveAsTheyWere) {
  ChunkCheck check;
  for (const size_t size :
       {size_t{0}, size_t{1}, kChunkBytesSent - 1, kChunkBytesSent, kChunkBytesSent + 1, 5 * kChunkBytesSent + 7}) {
    std::string bytes(size, 'x');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 % 251);
    std::string came;
    bool ended = false;
    for (const v1::FileChunk& chunk : ChunksOf(bytes)) {
      EXPECT_FALSE(ended);
      const absl::StatusOr<ChunkCheck::Step> step = check.Take(chunk);
      ASSERT_TRUE(step.ok()) << step.status();
      EXPECT_EQ(step->begins, came.empty());
      came += chunk.data();
      ended = step->ends;
      EXPECT_EQ(check.CheckEnd().ok(), ended);
    }
    EXPECT_TRUE(ended);
    EXPECT_EQ(came, bytes);
    EXPECT_EQ(check.content().sha256(), Sha256Of(bytes));
  }
}

TEST(FileChunksTest, EveryBreakOfTheRulesIsNamed) {
  const std::vector<v1::FileChunk> good = ChunksOf(std::string(2 * kChunkBytesSent, 'x'));
  struct Case {
    const char* what;
    std::vector<v1::FileChunk> chunks;
  };
  std::vector<Case> cases = {{"belongs to no content", {good[1]}},
                             {"before the one before has ended", {good[0], good[0]}},
                             {"ended inside a content", {good[0]}}};
  v1::FileChunk chunk = good[0];
  chunk.mutable_begins()->set_sha256("short");
  cases.push_back({"does not have 32 bytes", {chunk}});
  chunk = good[0];
  chunk.mutable_begins()->set_bytes(3);
  cases.push_back({"longer than it was said to be", {chunk}});
  chunk = good[0];
  chunk.clear_data();
  cases.push_back({"is empty", {chunk}});
  chunk = good[0];
  chunk.set_data(std::string(kChunkBytesMax + 1, 'x'));
  chunk.mutable_begins()->set_bytes(kChunkBytesMax + 1);
  cases.push_back({"more than 1 MiB", {chunk}});
  chunk = good[1];
  chunk.mutable_data()->back() = 'y';
  cases.push_back({"came with other bytes", {good[0], chunk}});
  for (const Case& wrong : cases) {
    ChunkCheck check;
    absl::Status status;
    for (const v1::FileChunk& one : wrong.chunks) {
      if (status.ok()) status = check.Take(one).status();
    }
    if (status.ok()) status = check.CheckEnd();
    EXPECT_TRUE(absl::StrContains(status.message(), wrong.what)) << status << " for " << wrong.what;
  }
}

// A file that has changed since its digest was made never arrives whole.
TEST(FileChunksTest, AChangedFileIsNotSentToItsEnd) {
  const std::string path = testing::TempDir() + "/chunks-" + RandomHex(2);
  const std::string before(kChunkBytesSent + 5, 'a');
  v1::FileContent content;
  content.set_sha256(Sha256Of(before));
  content.set_bytes(before.size());
  for (const std::string& now :
       {before, before + "b", before.substr(1), std::string(before.size(), 'b'), std::string()}) {
    std::ofstream(path, std::ios::binary) << now;
    ChunkCheck check;
    bool ended = false;
    const absl::Status status = SendFile(path, content, [&](const v1::FileChunk& chunk) {
      const absl::StatusOr<ChunkCheck::Step> step = check.Take(chunk);
      ended = ended || (step.ok() && step->ends);
      return step.status();
    });
    EXPECT_EQ(status.ok(), now == before);
    EXPECT_EQ(ended, now == before);
    EXPECT_TRUE(now == before || absl::IsDataLoss(status)) << status;
  }
  std::remove(path.c_str());
  EXPECT_TRUE(absl::IsNotFound(SendFile(path, content, [](const v1::FileChunk&) { return absl::OkStatus(); })));
  EXPECT_EQ(SendFile("/dev/null", content, [](const v1::FileChunk&) { return absl::OkStatus(); }).code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hooke
