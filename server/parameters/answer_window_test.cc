#include "server/parameters/answer_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace hooke {
namespace {

// The window finds its last `capacity` answers, each under its own exchange and block. Older ones are forgotten.
TEST(AnswerWindow, KeepsTheLastAnswers) {
  AnswerWindow window(3);
  for (uint64_t first = 0; first < 5; ++first) {
    window.Store({1, 7}, first, std::vector<float>{static_cast<float>(first), 1.0f});
  }
  std::vector<float> answer(2);
  EXPECT_FALSE(window.Find({1, 7}, 0, absl::MakeSpan(answer)));
  EXPECT_FALSE(window.Find({1, 7}, 1, absl::MakeSpan(answer)));
  for (uint64_t first = 2; first < 5; ++first) {
    ASSERT_TRUE(window.Find({1, 7}, first, absl::MakeSpan(answer)));
    EXPECT_EQ(answer, (std::vector<float>{static_cast<float>(first), 1.0f}));
  }
}

// Find does not return an answer to another exchange or of another length.
TEST(AnswerWindow, TellsExchangesApart) {
  AnswerWindow window(4);
  window.Store({1, 7}, 0, std::vector<float>{1, 2});
  std::vector<float> answer(2);
  std::vector<float> longer(3);
  EXPECT_FALSE(window.Find({2, 7}, 0, absl::MakeSpan(answer)));
  EXPECT_FALSE(window.Find({1, 8}, 0, absl::MakeSpan(answer)));
  EXPECT_FALSE(window.Find({1, 7}, 0, absl::MakeSpan(longer)));
  EXPECT_TRUE(window.Find({1, 7}, 0, absl::MakeSpan(answer)));
}

// A window with room for no answer keeps none.
TEST(AnswerWindow, MayBeEmpty) {
  AnswerWindow window(0);
  window.Store({1, 1}, 0, std::vector<float>{1});
  std::vector<float> answer(1);
  EXPECT_FALSE(window.Find({1, 1}, 0, absl::MakeSpan(answer)));
}

// Exchanges of a later incarnation come after all exchanges of an earlier one.
TEST(ExchangeId, OrdersByIncarnationThenSequence) {
  EXPECT_LT((ExchangeId{1, 100}), (ExchangeId{2, 1}));
  EXPECT_LT((ExchangeId{2, 1}), (ExchangeId{2, 2}));
  EXPECT_FALSE((ExchangeId{2, 2}) < (ExchangeId{2, 2}));
}

}  // namespace
}  // namespace hooke
