#include "mpi_group/transport/recent_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/transport/call_label.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/transport/transport.h"

namespace hooke {
namespace {

using testing::ElementsAre;

// Records the calls that Begin() tells it of; moves no messages.
class HearingTransport : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::StatusOr<Ticket> StartSend(const Outgoing&) override { return Ticket(); }
  absl::StatusOr<Ticket> StartReceive(const Incoming&) override { return Ticket(); }
  absl::Status Wait(Ticket, absl::Time) override { return absl::OkStatus(); }
  bool IsDone(Ticket) override { return true; }
  void Begin(const CallLabel& label, absl::Time now) override {
    heard.push_back(
        absl::StrCat(label.number, " ", label.operation, " ", label.values, " at ", absl::ToUnixSeconds(now)));
  }
  absl::Status CheckNotices() override { return absl::OkStatus(); }
  void HearLost(int) override {}
  absl::Status Settle(const absl::Status& failure, absl::Time until) override {
    time_to_settle = until - SteadyNow();
    return failure;
  }

  absl::Duration time_to_settle;
  std::vector<std::string> heard;
};

// Tell() passes on each call once, in order, with its number.
TEST(RecentCallsTest, TellsEachOnceInOrder) {
  RecentCalls calls;
  HearingTransport transport;
  calls.Tell(transport, absl::FromUnixSeconds(1));
  EXPECT_THAT(transport.heard, ElementsAre());
  calls.Add({.operation = "broadcast", .values = 10});
  calls.Add({.number = 77, .operation = "barrier"});
  calls.Tell(transport, absl::FromUnixSeconds(2));
  calls.Tell(transport, absl::FromUnixSeconds(3));
  calls.Add({.operation = "all-reduce", .values = 5});
  calls.Tell(transport, absl::FromUnixSeconds(4));
  EXPECT_THAT(transport.heard, ElementsAre("1 broadcast 10 at 2", "2 barrier 0 at 2", "3 all-reduce 5 at 4"));
}

// After many calls, Tell() passes on only the last ones. They keep the numbers that they had.
TEST(RecentCallsTest, KeepsTheLast) {
  RecentCalls calls;
  HearingTransport transport;
  calls.Add({.operation = "barrier"});
  calls.Tell(transport, absl::FromUnixSeconds(1));
  transport.heard.clear();
  for (uint64_t i = 0; i < 3 * RecentCalls::kKept; ++i) calls.Add({.operation = "reduce", .values = i});
  calls.Tell(transport, absl::FromUnixSeconds(2));
  ASSERT_EQ(transport.heard.size(), RecentCalls::kKept);
  EXPECT_EQ(transport.heard.front(), "18 reduce 16 at 2");
  EXPECT_EQ(transport.heard.back(), "25 reduce 23 at 2");
}

// The transport hears of the failed call before it settles. The error says which call it was, on which rank, and its
// deadline.
TEST(RecentCallsTest, SettlesWithTheCall) {
  RecentCalls calls;
  HearingTransport transport;
  calls.Add({.operation = "all-reduce", .values = 5});
  const absl::Status told = calls.Settle(transport, absl::InternalError("it broke"),
                                         {"all-reduce of 5 values", absl::FromUnixSeconds(4), absl::Seconds(3)});
  EXPECT_THAT(transport.heard, ElementsAre("1 all-reduce 5 at 4"));
  EXPECT_EQ(told, absl::InternalError("all-reduce of 5 values on rank 0 of 1 (deadline 3s): it broke"));
  EXPECT_LE(transport.time_to_settle, absl::Milliseconds(300));
}

}  // namespace
}  // namespace hooke
