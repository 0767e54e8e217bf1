#include "server/parameters/state_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <optional>
#include <string>
#include <vector>

#include "server/parameters/test_store.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StateSessionTest : public TestStore {
 protected:
  StateSessionTest() {
    center_.ranks = 2;
    MakeCenter(center_);
  }

  v1::KeepStateRequest Header(uint32_t incarnation, uint64_t step, const std::string& state) {
    v1::KeepStateRequest request;
    *request.mutable_header()->mutable_sender() = MakeSender(center_, 0, 1, incarnation);
    request.mutable_header()->set_step(step);
    request.mutable_header()->set_bytes(state.size());
    request.mutable_header()->set_crc32(
        static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(state.data()), state.size())));
    return request;
  }

  absl::Status Keep(const v1::KeepStateRequest& header, const std::vector<std::string>& chunks) {
    KeepStateSession session(store_.get());
    if (absl::Status status = session.Receive(header); !status.ok()) return status;
    for (const std::string& chunk : chunks) {
      v1::KeepStateRequest request;
      request.set_chunk(chunk);
      if (absl::Status status = session.Receive(request); !status.ok()) return status;
    }
    return session.Finish();
  }

  // Fetches the rank's states, as the group's given incarnation. Returns the steps in the header, and then the bytes of
  // the state of `step`.
  std::vector<std::string> Fetch(uint32_t incarnation, std::optional<uint64_t> step, absl::Status* status = nullptr) {
    v1::FetchStateRequest request;
    *request.mutable_sender() = MakeSender(center_, 0, 1, incarnation);
    if (step.has_value()) {
      request.mutable_state()->set_incarnation(1);
      request.mutable_state()->set_step(*step);
    }
    std::vector<std::string> all;
    const absl::Status fetched = FetchState(*store_, request, [&](const v1::FetchStateResponse& response) {
      for (const v1::StateId& id : response.header().states()) all.push_back(std::to_string(id.step()));
      if (!response.chunk().empty()) all.push_back(response.chunk());
      return absl::OkStatus();
    });
    if (status != nullptr) *status = fetched;
    return all;
  }

  TestCenter center_;
};

// A rank's state comes back in the next start of its group, also after a restart of the server.
TEST_F(StateSessionTest, KeepsForTheNextStart) {
  EXPECT_THAT(Fetch(1, std::nullopt), IsEmpty());
  ASSERT_TRUE(Keep(Header(1, 7, "momentum"), {"mom", "entum"}).ok());
  ASSERT_EQ(store_->Attach(kNow, MakeAttachRequest(center_, 0, 2)).value().state(), v1::AttachResponse::READY);
  EXPECT_THAT(Fetch(2, 7), ElementsAre("7", "momentum"));
  Restart();
  ASSERT_EQ(store_->Attach(kNow, MakeAttachRequest(center_, 0, 2)).value().state(), v1::AttachResponse::READY);
  EXPECT_THAT(Fetch(2, 7), ElementsAre("7", "momentum"));
}

// A start that has been replaced keeps nothing, even if it began to send before.
TEST_F(StateSessionTest, RefusesAnOlderStart) {
  KeepStateSession session(store_.get());
  ASSERT_TRUE(session.Receive(Header(1, 7, "")).ok());
  ASSERT_TRUE(store_->Attach(kNow, MakeAttachRequest(center_, 0, 2)).ok());
  EXPECT_EQ(session.Finish().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Keep(Header(1, 8, ""), {}).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Fetch(2, std::nullopt), IsEmpty());
}

// A sender without the job's key neither keeps nor reads a state.
TEST_F(StateSessionTest, NeedsTheKey) {
  v1::KeepStateRequest header = Header(1, 7, "");
  header.mutable_header()->mutable_sender()->set_job_key("another");
  EXPECT_EQ(Keep(header, {}).code(), absl::StatusCode::kPermissionDenied);
  center_.job_key = "another";
  absl::Status status;
  Fetch(1, std::nullopt, &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
}

// Messages out of order and bytes that changed on the way are refused.
TEST_F(StateSessionTest, RefusesBadMessages) {
  v1::KeepStateRequest chunk;
  chunk.set_chunk("a");
  EXPECT_EQ(Keep(chunk, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(KeepStateSession(store_.get()).Finish().code(), absl::StatusCode::kInvalidArgument);
  KeepStateSession twice(store_.get());
  ASSERT_TRUE(twice.Receive(Header(1, 7, "")).ok());
  EXPECT_EQ(twice.Receive(Header(1, 7, "")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Keep(Header(1, 8, "momentum"), {"momenXum"}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Keep(Header(1, 8, "momentum"), {std::string(3 << 20, 'a')}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Fetch(1, std::nullopt), IsEmpty());
}

// States end with their job: when it is sealed, when it is forgotten, and at the next start if a crash left them
// behind.
TEST_F(StateSessionTest, EndWithTheJob) {
  ASSERT_TRUE(Keep(Header(1, 7, "a"), {"a"}).ok());
  const std::string name = KeptStateName({"job-1", 0, 1}, {1, 7});
  const std::string bytes = storage_->Get(name);
  ASSERT_FALSE(bytes.empty());
  ASSERT_TRUE(store_->Seal("job-1").ok());
  EXPECT_EQ(storage_->Get(name), "");
  EXPECT_EQ(Keep(Header(1, 8, "a"), {"a"}).code(), absl::StatusCode::kFailedPrecondition);
  storage_->Put(name, bytes);
  Restart();
  EXPECT_EQ(storage_->Get(name), "") << "a state of a job that has ended";
  center_.job_id = "job-2";
  MakeCenter(center_);
  ASSERT_TRUE(Keep(Header(1, 7, "a"), {"a"}).ok());
  EXPECT_EQ(store_->disk_use().jobs.size(), 1u) << "job-1";
  ASSERT_TRUE(store_->Forget("job-2", center_.job_key).ok());
  EXPECT_EQ(storage_->Get(KeptStateName({"job-2", 0, 1}, {1, 7})), "");
}

}  // namespace
}  // namespace hooke
