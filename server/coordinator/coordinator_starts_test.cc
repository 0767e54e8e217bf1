// Shows which times the coordinator keeps of a job's submission and of the starts of its groups.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CoordinatorStartsTest : public CoordinatorFixture {
 protected:
  v1::ReadStartsResponse Starts(const std::string& id) { return *coordinator_->Starts(id); }

  // Returns "QUEUED 0+1.5" for a span that began with the fixture's clock and took 1.5 s.
  static std::vector<std::string> Texts(const google::protobuf::RepeatedPtrField<v1::LifeSpan>& spans) {
    std::vector<std::string> texts;
    texts.reserve(static_cast<size_t>(spans.size()));
    for (const v1::LifeSpan& span : spans) {
      texts.push_back(absl::StrCat(v1::LifeSpan::What_Name(span.what()), " ", span.begin_unix_us() / 1e6 - 1000000, "+",
                                   static_cast<double>(span.duration_us()) / 1e6));
    }
    return texts;
  }

  // The rank has taken a second to load, and half a second for its first step.
  void SendBegun(FakeWorker& worker, const GroupKey& key) {
    v1::RankEvent event;
    v1::RankSpan* span = event.mutable_begun()->add_spans();
    span->set_what(v1::LifeSpan::LOADED);
    span->set_ago_us(1500000);
    span->set_duration_us(1000000);
    span = event.mutable_begun()->add_spans();
    span->set_what(v1::LifeSpan::FIRST_STEP);
    span->set_ago_us(500000);
    span->set_duration_us(500000);
    worker.Send(key, 0, event, now_);
  }
};

// A job waits for a worker, starts, and comes to its first step. The client has said what it did before. All of it is
// there after a restart of the coordinator.
TEST_F(CoordinatorStartsTest, WholeWay) {
  v1::SubmitRequest request = ExampleSubmission("s1", {1, 2});
  request.set_preparing_us(300000);
  request.set_upload_us(100000);
  const std::string id = *coordinator_->Submit(request, now_);
  EXPECT_THAT(Texts(Starts(id).submit()), ElementsAre("SUBMIT -0.3+0.3", "UPLOAD -0.1+0.1"));
  EXPECT_THAT(Starts(id).starts(), IsEmpty());
  Pass(absl::Seconds(2), {});
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  w1.Receive(now_);
  Pass(absl::Seconds(1), {&w1});
  w1.Started({id, 0, 1}, absl::Milliseconds(400), now_);
  Pass(absl::Seconds(2), {&w1});
  SendBegun(w1, {id, 0, 1});
  for (int i = 0; i < 2; ++i) {
    const v1::ReadStartsResponse starts = Starts(id);
    EXPECT_THAT(Texts(starts.submit()), SizeIs(2));
    ASSERT_THAT(starts.starts(), SizeIs(1));
    EXPECT_EQ(starts.starts(0).worker(), "w1");
    EXPECT_EQ(starts.starts(0).incarnation(), 1u);
    EXPECT_NE(starts.starts(0).waited_for(), "");
    EXPECT_THAT(Texts(starts.starts(0).spans()),
                ElementsAre("QUEUED 0+2", "STORED 2+0.6", "PREPARED 2.6+0.4", "LOADED 3.5+1", "FIRST_STEP 4.5+0.5"));
    Restart();
  }
  EXPECT_EQ(coordinator_->Starts("none-1").status().code(), absl::StatusCode::kNotFound);
}

// A later start counts from when the one before had ended. The evaluation at the end is no start to a first step.
TEST_F(CoordinatorStartsTest, LaterStarts) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  w1.Receive(now_);
  Pass(absl::Seconds(1), {&w1});
  w1.End({id, 0, 1}, absl::AbortedError("a rank died"), now_);
  Pass(absl::Milliseconds(500), {&w1});
  v1::ReadStartsResponse starts = Starts(id);
  ASSERT_THAT(starts.starts(), SizeIs(2));
  EXPECT_THAT(Texts(starts.starts(0).spans()), ElementsAre("STORED 0+0"));
  EXPECT_EQ(starts.starts(1).incarnation(), 2u);
  EXPECT_THAT(Texts(starts.starts(1).spans()), ElementsAre("QUEUED 1+0.5", "STORED 1.5+0"));
  // A report of the new start adds the rank's spans to it.
  SendBegun(w1, {id, 0, 2});
  EXPECT_THAT(Texts(Starts(id).starts(1).spans()), SizeIs(4));
  w1.End({id, 0, 2}, absl::OkStatus(), now_);
  Pass(absl::Milliseconds(500), {&w1});
  EXPECT_THAT(Starts(id).starts(), SizeIs(2));
}

}  // namespace
}  // namespace hooke
