#include "mpi_group/collectives/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/collectives/on_all_ranks.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/counting_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using testing::Each;
using testing::ElementsAre;

absl::Time Soon() { return SteadyNow() + absl::Seconds(20); }

std::vector<std::unique_ptr<CountingTransport>> CountingTransports(int n) {
  std::vector<std::unique_ptr<CountingTransport>> counting;
  for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(n)) {
    counting.push_back(std::make_unique<CountingTransport>(std::move(transport)));
  }
  return counting;
}

// All ranks get rank 0's text, and rank 0 gets all texts in the order of the ranks, however many ranks there are.
TEST(TextsTest, EveryNumberOfRanks) {
  for (int n = 1; n <= 17; ++n) {
    std::string joined;
    for (int rank = 0; rank < n; ++rank) joined += std::string(rank % 3, static_cast<char>('a' + rank));
    const auto transports = MakeInProcessTransports(n);
    RunRanks(n, [&](int rank) {
      for (const std::string& text : {std::string(), std::string("hello"), std::string(100000, 'x')}) {
        EXPECT_EQ(*ShareText(*transports[rank], rank == 0 ? text : "other", Soon()), text);
      }
      const absl::StatusOr<std::string> got =
          JoinTexts(*transports[rank], std::string(rank % 3, static_cast<char>('a' + rank)), Soon());
      ASSERT_EQ(got.status(), absl::OkStatus());
      if (rank == 0) {
        EXPECT_EQ(*got, joined);
      }
    });
  }
}

// All ranks refuse a text that is too long, and the transport remains usable.
TEST(TextsTest, TooLongTextIsRefused) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    EXPECT_EQ(ShareText(*transports[rank], std::string(kTextBytesMax + 1, 'x'), Soon()).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ShareText(*transports[rank], "ok", Soon()).status(), absl::OkStatus());
  });
}

// A rank refuses joined texts that are too long before it takes memory for them.
TEST(TextsTest, TooLongJoinedTextIsRefused) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    if (rank == 0) {
      EXPECT_EQ(JoinTexts(*transports[0], "x", Soon()).status().code(), absl::StatusCode::kInternal);
      return;
    }
    uint64_t bytes = kTextBytesMax;
    EXPECT_EQ(transports[1]->Send({0, {reinterpret_cast<const char*>(&bytes), sizeof(bytes)}}, Soon()),
              absl::OkStatus());
  });
}

// All ranks learn the same nodes.
TEST(TextsTest, GatherNodes) {
  const std::vector<std::string> identities = {"a", "b", "a"};
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(3);
  RunRanks(3, [&](int rank) {
    const absl::StatusOr<Nodes> nodes = GatherNodes(*transports[rank], identities[rank], Soon());
    ASSERT_EQ(nodes.status(), absl::OkStatus());
    EXPECT_THAT(nodes->node_of_rank, ElementsAre(0, 1, 0));
    EXPECT_THAT(nodes->ranks_of_node, ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
  });
}

// No rank sends more messages than twice the levels of the tree. All n ranks together send 4(n-1) messages. On average
// a rank sends at most 8 bytes for every second level, 16 bytes of lengths, and one pattern. That holds for ranks in
// blocks and for round robin, on each number of nodes tried.
TEST(TextsTest, CostOfGatherNodes) {
  constexpr int kRanks = 128;
  constexpr int kLevels = 7;
  for (int nodes : {1, 2, 16, 128}) {
    for (bool blocks : {false, true}) {
      const auto transports = CountingTransports(kRanks);
      RunRanks(kRanks, [&](int rank) {
        const int node = blocks ? rank / (kRanks / nodes) : rank % nodes;
        const absl::StatusOr<Nodes> gathered = GatherNodes(*transports[rank], absl::StrCat(node), Soon());
        ASSERT_EQ(gathered.status(), absl::OkStatus());
        EXPECT_EQ(gathered->ranks_of_node.size(), nodes);
      });
      uint64_t messages = 0;
      uint64_t bytes = 0;
      for (const auto& transport : transports) {
        EXPECT_LE(transport->sent().messages, 2 * kLevels);
        messages += transport->sent().messages;
        bytes += transport->sent().bytes;
      }
      EXPECT_EQ(messages, 4 * (kRanks - 1));
      EXPECT_LE(bytes, kRanks * (8 + 8 * kLevels / 2 + 8 + sizeof(NodePattern)));
    }
  }
}

// A vote is true only if all ranks say so. The first objection of any rank reaches all.
TEST(OnAllRanksTest, VotesAndObjections) {
  constexpr int kRanks = 11;
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(kRanks);
  for (int against = -1; against < kRanks; ++against) {
    std::vector<std::string> objections(kRanks);
    RunRanks(kRanks, [&](int rank) {
      const absl::StatusOr<bool> all = OnAllRanks(*transports[rank], rank != against, Soon());
      ASSERT_EQ(all.status(), absl::OkStatus());
      EXPECT_EQ(*all, against < 0);
      const bool objects = against >= 0 && (rank == against || rank == kRanks - 1);
      const absl::StatusOr<std::string> first =
          FirstObjection(*transports[rank], objects ? absl::StrCat("rank ", rank, " objects") : "", Soon());
      ASSERT_EQ(first.status(), absl::OkStatus());
      objections[rank] = *first;
    });
    EXPECT_THAT(objections, Each(against < 0 ? "" : absl::StrCat("rank ", against, " objects")));
  }
}

}  // namespace
}  // namespace hooke
