// Tests how ranks learn why one of them failed. Needs no device.

#include "mpi_group/cuda/agree_on_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"

namespace hooke {
namespace {

// Returns each rank's result of AgreeOnStatus. Rank r passes passed[r].
std::vector<absl::Status> Agreed(const std::vector<absl::Status>& passed) {
  const int n = static_cast<int>(passed.size());
  const auto groups = MakeInProcessGroups(n);
  std::vector<absl::Status> got(n);
  RunRanks(n, [&](int rank) { got[rank] = AgreeOnStatus(*groups[rank], passed[rank]); });
  return got;
}

TEST(AgreeOnStatus, AllRanksLearnTheReason) {
  const absl::Status ok;
  const absl::Status one = absl::ResourceExhaustedError("no memory");
  const absl::Status other = absl::InternalError("no device");
  EXPECT_EQ(Agreed({ok, ok, ok}), std::vector<absl::Status>({ok, ok, ok}));
  const absl::Status told_one = absl::ResourceExhaustedError("rank 0: no memory");
  EXPECT_EQ(Agreed({one, ok, ok}), std::vector<absl::Status>({one, told_one, told_one}));
  EXPECT_EQ(Agreed({one, ok, other}),
            std::vector<absl::Status>({one, absl::InternalError("rank 2: no device"), other}));
}

// A long message is cut.
TEST(AgreeOnStatus, OfLongMessagesTheFirstWordsArrive) {
  const std::string text(1000, 'x');
  const std::vector<absl::Status> got = Agreed({absl::OkStatus(), absl::InternalError(text)});
  EXPECT_EQ(got[0], absl::InternalError(absl::StrCat("rank 1: ", text.substr(0, 511))));
  EXPECT_EQ(got[1], absl::InternalError(text));
}

// If the group itself fails, here because a rank does not come, each rank gets an error: its own, or the group's.
TEST(AgreeOnStatus, AFailedGroupIsAnErrorToo) {
  GroupOptions options;
  options.deadline = absl::Milliseconds(200);
  const auto groups = MakeInProcessGroups(3, options);
  const absl::Status own = absl::InternalError("no device");
  std::vector<absl::Status> got(2);
  RunRanks(2, [&](int rank) { got[rank] = AgreeOnStatus(*groups[rank], rank == 0 ? own : absl::OkStatus()); });
  EXPECT_EQ(got[0], own);
  EXPECT_FALSE(got[1].ok());
}

}  // namespace
}  // namespace hooke
