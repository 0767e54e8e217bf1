#include "worker/report/want_of_server.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "mpi_group/groups/in_process_group.h"
#include "worker/exchange/agreement.h"

namespace hooke {
namespace {

// Only errors that a missing server can cause are marked, and copies keep the mark.
TEST(WantOfServerTest, MarksWhatAServerIsMissingFor) {
  const absl::Status unavailable = ForWantOf("a:1", absl::UnavailableError("server a:1: connection refused"));
  EXPECT_EQ(unavailable.message(), "server a:1: connection refused");
  const std::vector<absl::Status> copies(2, unavailable);
  for (const absl::Status& copy : copies) EXPECT_EQ(WantedServer(copy), "a:1");
  EXPECT_EQ(WantedServer(ForWantOf("[::1]:2", absl::DeadlineExceededError("x"))), "[::1]:2");
  EXPECT_EQ(WantedServer(ForWantOf("", absl::UnavailableError("x"))), "");
  EXPECT_EQ(WantedServer(absl::UnavailableError("rank 1 has left, server a:1 has not")), "");
  for (const absl::Status& status : {absl::OkStatus(), absl::DataLossError("x"), absl::FailedPreconditionError("x")}) {
    EXPECT_EQ(ForWantOf("a:1", status), status);
  }
}

// A rank that gets the error from another rank also gets the server's address, however long the message is.
TEST(WantOfServerTest, CrossesTheGroup) {
  std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(3);
  std::vector<std::thread> threads;
  threads.reserve(groups.size());
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&group = *groups[rank], rank] {
      absl::Status outcome;
      if (rank == 1) outcome = ForWantOf("node-1.example:7411", absl::UnavailableError(std::string(500, 'x')));
      EXPECT_TRUE(AgreeOnOutcome(group, outcome).ok());
      EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(WantedServer(outcome), "node-1.example:7411");
      outcome = rank == 0 ? absl::UnavailableError("a rank is gone") : absl::OkStatus();
      EXPECT_TRUE(BroadcastOutcome(group, outcome).ok());
      EXPECT_EQ(outcome, absl::UnavailableError("a rank is gone"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Only UNAVAILABLE can be marked as the server's own answer. An error can carry both marks.
TEST(WantOfServerTest, TellsAServersWordFromABrokenConnection) {
  EXPECT_FALSE(IsSaidByServer(absl::UnavailableError("connection refused")));
  EXPECT_FALSE(IsSaidByServer(SaidByServer(absl::AbortedError("replaced"))));
  const absl::Status said = SaidByServer(ForWantOf("a:1", absl::UnavailableError("the round is not complete")));
  EXPECT_TRUE(IsSaidByServer(said));
  EXPECT_EQ(WantedServer(said), "a:1");
  EXPECT_TRUE(IsSaidByServer(ForWantOf("a:1", said)));
}

}  // namespace
}  // namespace hooke
