#include "job/model_file/center_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// Three shards of one tensor with 5 values: 0 to 1, 2 to 3, and 4.
class FakeSource final : public CenterSource {
 public:
  FakeSource() {
    for (int shard = 0; shard < 3; ++shard) {
      v1::PullResponse first;
      v1::PullResponse::Header& header = *first.mutable_header();
      v1::Parameter& parameter = *header.mutable_layout()->add_parameters();
      parameter.set_name("w");
      parameter.set_type(v1::Parameter::FLOAT32);
      parameter.add_shape(5);
      header.set_shard_index(static_cast<uint32_t>(shard));
      header.set_shard_count(3);
      v1::PullResponse second;
      second.mutable_block()->set_first(uint64_t{2} * static_cast<uint64_t>(shard));
      for (int i = 2 * shard; i < 5 && i < 2 * shard + 2; ++i) {
        const auto value = static_cast<float>(i);
        second.mutable_block()->mutable_values()->append(reinterpret_cast<const char*>(&value), 4);
      }
      messages[shard] = {first, second};
    }
  }

  absl::StatusOr<std::optional<v1::PullResponse>> Next(int shard) override {
    asked.push_back(shard);
    std::deque<v1::PullResponse>& left = messages[shard];
    if (left.empty() && shard == failing) return absl::UnavailableError("server c is away");
    if (left.empty()) return std::nullopt;
    v1::PullResponse message = std::move(left.front());
    left.pop_front();
    return message;
  }

  std::deque<v1::PullResponse> messages[3];
  int failing = -1;
  std::vector<int> asked;
};

v1::JobStatus Job() {
  v1::JobStatus job;
  job.set_job_id("fashion-1");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  for (const char* server : {"a:1", "b:1", "c:1"}) job.add_servers(server);
  return job;
}

// The file is known in its size before its first byte, and comes in order in one pass.
TEST(CenterFileTest, OnePassFromTheFirstByteToTheLast) {
  FakeSource source;
  absl::StatusOr<CenterFile> file = CenterFile::Open(Job(), source);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(source.asked, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(file->tensors(), 1u);
  EXPECT_EQ(file->values(), 5u);
  std::string all;
  while (true) {
    const absl::StatusOr<std::string> bytes = file->Next();
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    if (bytes->empty()) break;
    all += *bytes;
  }
  ASSERT_EQ(all.size(), file->bytes());
  EXPECT_THAT(all, HasSubstr(R"("w":{"dtype":"F32","shape":[5],"data_offsets":[0,20]})"));
  for (size_t i = 0; i < 5; ++i) {
    float value;
    std::memcpy(&value, all.data() + all.size() - 20 + 4 * i, 4);
    EXPECT_EQ(value, static_cast<float>(i));
  }
}

// If the last server is away from the beginning, the error comes before the first byte of the file.
TEST(CenterFileTest, FailsBeforeTheFirstByteIfAServerIsAway) {
  FakeSource source;
  source.messages[2].clear();
  source.failing = 2;
  EXPECT_EQ(CenterFile::Open(Job(), source).status(), absl::UnavailableError("server c is away"));
  FakeSource other;
  other.messages[2][0].mutable_header()->mutable_layout()->mutable_parameters(0)->set_name("v");
  EXPECT_EQ(
      CenterFile::Open(Job(), other).status(),
      absl::DataLossError("server c:1: its layout is not that of shard 0; try again, and if that repeats, see the "
                          "log of that server"));
  v1::JobStatus queued;
  queued.set_job_id("fashion-1");
  queued.set_state(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(CenterFile::Open(queued, source).status(),
            absl::FailedPreconditionError("job fashion-1 (queued) has no center yet; export it after its first step"));
}

// If a server fails after the first bytes of the file, Next() returns an error. The file never just ends early.
TEST(CenterFileTest, FailsLaterIfAServerIsLost) {
  for (const int failing : {2, -1}) {
    FakeSource source;
    source.messages[2].pop_back();
    source.failing = failing;
    absl::StatusOr<CenterFile> file = CenterFile::Open(Job(), source);
    ASSERT_TRUE(file.ok()) << file.status();
    for (int piece = 0; piece < 3; ++piece) ASSERT_TRUE(file->Next().ok());
    EXPECT_EQ(file->Next().status(), failing == 2 ? absl::UnavailableError("server c is away")
                                                  : absl::DataLossError("the servers sent 4 of 5 values; try again"));
  }
}

}  // namespace
}  // namespace hooke
