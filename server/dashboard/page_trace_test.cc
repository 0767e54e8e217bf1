#include "server/dashboard/page_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/worker.pb.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"
#include "server/journal/profile_store.h"

namespace hooke {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

constexpr size_t kPieceBytesMax = 256 << 10;

// A rank's profile with so many events, one a microsecond.
v1::RankProfile ProfileOf(uint64_t events) {
  v1::RankProfile profile;
  profile.set_machine("m1");
  profile.mutable_clock()->set_offset_ns(1000000000000000);
  for (uint64_t i = 0; i < events; ++i) {
    v1::TraceEvent* event = profile.add_events();
    event->set_begin_ns(1000 * i);
    event->set_duration_ns(900);
    event->set_phase(v1::RankProgress::COMPUTE);
    event->set_step(i);
  }
  return profile;
}

// The trace of a job of the fixture's coordinator. Nobody answers at the address of its server, b:1.
class PageTraceTest : public CoordinatorFixture {
 protected:
  PageTraceTest() {
    profiles_ = std::make_shared<ProfileStore>(*ProfileStore::Open({absl::StrCat(folder_, "/profiles")}));
    settings_.profiles = profiles_;
    Restart();
    trace_.emplace(coordinator_.get(), PageTraceOptions{{}, absl::Milliseconds(20)});
  }

  // Submits a job of one group, which starts. It has a server from then on.
  std::string StartJob() {
    EXPECT_TRUE(w1_.Connect(*coordinator_, now_).ok());
    std::string id = Submit({1, 2});
    w1_.Receive(now_);
    Pass(absl::Seconds(1), {&w1_});
    return id;
  }

  void Put(const std::string& id, uint32_t rank, const v1::RankProfile& profile) {
    const absl::Status status = profiles_->Put({id, 0, rank}, profile.SerializeAsString());
    EXPECT_TRUE(status.ok()) << status;
  }

  // Takes the answer as HttpServer does, piece by piece.
  static std::vector<std::string> Pieces(HttpAnswer& answer) {
    std::vector<std::string> pieces;
    for (uint64_t sent = 0; sent < answer.bytes;) {
      const absl::StatusOr<std::string> piece = answer.next();
      EXPECT_TRUE(piece.ok()) << piece.status();
      if (!piece.ok() || piece->empty()) break;
      sent += piece->size();
      pieces.push_back(*piece);
    }
    return pieces;
  }

  // Returns the whole trace of the job.
  nlohmann::json Made(const std::string& id) {
    absl::StatusOr<HttpAnswer> answer = trace_->Make(id);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    EXPECT_EQ(answer->type, "application/json");
    std::string text;
    for (const std::string& piece : Pieces(*answer)) text += piece;
    EXPECT_EQ(text.size(), answer->bytes);
    return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  }

  static std::vector<std::string> NamesIn(const nlohmann::json& trace) {
    std::vector<std::string> names;
    for (const nlohmann::json& event : trace["traceEvents"]) {
      if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
    }
    return names;
  }

  std::shared_ptr<ProfileStore> profiles_;
  FakeWorker w1_{"w1", 2};
  std::optional<PageTrace> trace_;
};

// A job that is not there, and one of which nothing has started, have no trace. The answer says why.
TEST_F(PageTraceTest, WithoutAStartThereIsNone) {
  EXPECT_EQ(trace_->Make("none-1").status().code(), absl::StatusCode::kNotFound);
  const std::string id = Submit({1, 2});
  const absl::Status status = trace_->Make(id).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no profile yet"));
}

// Before its first profile, a job's trace has the starts of its groups, and no server is asked.
TEST_F(PageTraceTest, StartsAloneMakeATrace) {
  const std::string id = StartJob();
  const nlohmann::json trace = Made(id);
  EXPECT_EQ(trace["otherData"]["job_id"], id);
  EXPECT_EQ(trace["otherData"]["starts"], 1);
  EXPECT_EQ(trace["otherData"]["notes"], nlohmann::json::array());
}

// Each rank with a profile is in the trace. A server that does not answer is missing, and the trace says so.
TEST_F(PageTraceTest, HasTheRanksAndNamesAServerThatIsAway) {
  const std::string id = StartJob();
  Put(id, 0, ProfileOf(3));
  Put(id, 1, ProfileOf(3));
  const nlohmann::json trace = Made(id);
  EXPECT_THAT(NamesIn(trace), Contains("group 0 rank 0"));
  EXPECT_THAT(NamesIn(trace), Contains("group 0 rank 1"));
  ASSERT_THAT(trace["otherData"]["notes"], SizeIs(1)) << trace["otherData"];
  EXPECT_THAT(trace["otherData"]["notes"][0].get<std::string>(), HasSubstr("b:1"));
}

// A long trace leaves in pieces of bounded size, which together are the file.
TEST_F(PageTraceTest, ALongTraceComesInPieces) {
  const std::string id = StartJob();
  Put(id, 0, ProfileOf(2048));
  Put(id, 1, ProfileOf(2048));
  absl::StatusOr<HttpAnswer> answer = trace_->Make(id);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_GT(answer->bytes, kPieceBytesMax);
  for (const std::string& piece : Pieces(*answer)) EXPECT_THAT(piece.size(), Le(kPieceBytesMax));
  *answer = HttpAnswer();
  EXPECT_THAT(Made(id)["traceEvents"], SizeIs(testing::Ge(2u * 2048)));
}

// Only one trace at a time takes memory. The next is refused until nobody has the answer of the first any more, taken
// whole or not. A copy of the answer counts, too.
TEST_F(PageTraceTest, OneAtATime) {
  const std::string id = StartJob();
  absl::StatusOr<HttpAnswer> first = trace_->Make(id);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status refused = trace_->Make(id).status();
  EXPECT_EQ(refused, absl::UnavailableError("another trace is being made or sent; try again in some seconds"));
  std::optional<HttpAnswer> copy = *first;
  *first = HttpAnswer();
  EXPECT_EQ(trace_->Make(id).status(), refused);
  copy.reset();
  EXPECT_TRUE(trace_->Make(id).ok());
  EXPECT_EQ(trace_->Make("none-1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(trace_->Make(id).ok()) << "an error has kept the place";
}

// Profiles that would take too much of the coordinator's memory are refused, and the message names the way out.
TEST_F(PageTraceTest, ProfilesThatAreTooLargeAreRefused) {
  const std::string id = StartJob();
  v1::RankProfile large = ProfileOf(1);
  constexpr size_t kBytes = (1 << 20) - 1024;  // A profile's file has less than a mebibyte.
  large.add_collectives()->set_algorithm(std::string(kBytes - large.ByteSizeLong() - 16, 'a'));
  constexpr uint32_t kFit = PageTrace::kProfileBytesMax / kBytes;
  for (uint32_t rank = 0; rank < kFit; ++rank) Put(id, rank, large);
  EXPECT_THAT(NamesIn(Made(id)), Contains(absl::StrCat("group 0 rank ", kFit - 1)));
  Put(id, kFit, large);
  const absl::Status refused = absl::ResourceExhaustedError(absl::StrCat(
      "the trace of ", kFit + 1, " ranks is too large for this page; use `hooke profile ", id, " --trace FILE`"));
  EXPECT_EQ(trace_->Make(id).status(), refused);
  EXPECT_EQ(trace_->Make(id).status(), refused) << "an error has kept the place";
}

}  // namespace
}  // namespace hooke
