#include "worker/training/narrow_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"
#include "worker/model/arena.h"

namespace hooke {
namespace {

constexpr DataType kTypes[] = {DataType::kBFloat16, DataType::kFloat16};

std::vector<uint16_t> Rounded(DataType type, const std::vector<float>& values) {
  std::vector<uint16_t> rounded(values.size());
  Narrow(type, values, MutableBytesOf(absl::MakeSpan(rounded)));
  return rounded;
}

std::vector<float> Widened(DataType type, const std::vector<uint16_t>& values) {
  std::vector<float> widened(values.size());
  Widen(type, BytesOf(absl::MakeConstSpan(values)), absl::MakeSpan(widened));
  return widened;
}

void Follow(DataType type, const std::vector<uint16_t>& values, std::vector<float>& master) {
  FollowValues(type, BytesOf(absl::MakeConstSpan(values)), absl::MakeSpan(master));
}

// A master keeps its own bits while the program leaves the value alone. When the program moves the value, the master
// moves by as much and keeps what rounding took away.
TEST(FollowValuesTest, KeepsWhatRoundingTakes) {
  for (const DataType type : kTypes) {
    std::vector<float> master = {1.001f, -3.0003f, 0.0f, 1e-3f};
    const std::vector<float> before = master;
    std::vector<uint16_t> values = Rounded(type, master);
    Follow(type, values, master);
    EXPECT_EQ(master, before);
    std::vector<float> moved = Widened(type, values);
    for (float& value : moved) value += 0.5f;
    values = Rounded(type, moved);
    Follow(type, values, master);
    EXPECT_EQ(Rounded(type, master), values);
    EXPECT_FLOAT_EQ(master[0], 1.501f);
    EXPECT_FLOAT_EQ(master[1], -2.5003f);
  }
}

// After any change of values, each master rounds to its value, at every length of a vector, also in the last block.
TEST(FollowValuesTest, AlwaysRoundsToTheValue) {
  std::mt19937 random(3);
  for (const DataType type : kTypes) {
    for (const size_t size : {0, 1, 3, 5, 1023, 1024, 1025, 3000}) {
      std::vector<float> master(size);
      for (float& value : master) value = std::normal_distribution<float>(0, 10)(random);
      std::vector<uint16_t> values = Rounded(type, master);
      for (int step = 0; step < 5; ++step) {
        for (uint16_t& value : values) {
          if (random() % 3 != 0) value = static_cast<uint16_t>(random());
        }
        Follow(type, values, master);
        const std::vector<float> widened = Widened(type, values);
        const std::vector<uint16_t> rounded = Rounded(type, master);
        for (size_t i = 0; i < size; ++i) {
          if (std::isnan(widened[i])) {
            EXPECT_TRUE(std::isnan(master[i]));
          } else {
            EXPECT_EQ(rounded[i], values[i]) << widened[i] << " and " << master[i];
          }
        }
      }
    }
  }
}

// NaN and infinity of a value reach the master, and the master is finite again when the value is.
TEST(FollowValuesTest, NotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DataType type : kTypes) {
    std::vector<float> master = {1.001f, 2.001f, 3.001f};
    Follow(type, Rounded(type, {std::nanf(""), kInfinity, -kInfinity}), master);
    EXPECT_TRUE(std::isnan(master[0]));
    EXPECT_EQ(master[1], kInfinity);
    EXPECT_EQ(master[2], -kInfinity);
    Follow(type, Rounded(type, {1, 2, 3}), master);
    EXPECT_EQ(master, (std::vector<float>{1, 2, 3}));
  }
  // A master that is out of float16's range has an infinite value. The program has not changed that value, so the
  // master stays.
  std::vector<float> large = {70'000};
  const std::vector<uint16_t> value = Rounded(DataType::kFloat16, large);
  EXPECT_EQ(Widened(DataType::kFloat16, value)[0], kInfinity);
  Follow(DataType::kFloat16, value, large);
  EXPECT_EQ(large[0], 70'000);
}

class NarrowTensorsTest : public ::testing::TestWithParam<bool> {
 protected:
  NarrowTensorsTest()
      : arena_(*Arena::Make(ArenaSizesOf(tensors_, widens(), 2))),
        made_(*NarrowTensors::Make(tensors_, widens(), arena_, AllocateOnHeap)) {}

  static bool widens() { return GetParam(); }
  template <typename T>
  static absl::Span<T> As(absl::Span<char> bytes) {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  static void Set(DataType type, absl::Span<char> values, float number) {
    const std::vector<float> numbers(values.size() / 2, number);
    Narrow(type, numbers, values);
  }

  const std::vector<TypedTensor> tensors_ = {{DataType::kBFloat16, 3, true}, {DataType::kFloat32, 5, true},
                                             {DataType::kFloat16, 1, true},  {DataType::kBFloat16, 0, true},
                                             {DataType::kBFloat16, 5, true}, {DataType::kFloat16, 3, false},
                                             {DataType::kFloat32, 1, false}};
  const Arena arena_;
  const std::unique_ptr<NarrowTensors> made_;
};

INSTANTIATE_TEST_SUITE_P(All, NarrowTensorsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Widens" : "StepsHere"; });

// Tensors of any number of values have places that do not overlap, with the right sizes. Narrow ones are aligned.
TEST_P(NarrowTensorsTest, Places) {
  const Arena::Sizes sizes = ArenaSizesOf(tensors_, widens(), 2);
  EXPECT_EQ(sizes.parameters, 14u);
  EXPECT_EQ(sizes.buffers, 4u);
  EXPECT_EQ(*sizes.gradients, widens() ? 14u : 5u);
  std::vector<absl::Span<char>> all;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TypedTensor& tensor = tensors_[i];
    const TensorPlace& place = made_->places()[i];
    EXPECT_EQ(place.values.size(), tensor.values * SizeOf(tensor.type));
    EXPECT_EQ(place.gradient.size(), tensor.parameter ? place.values.size() : 0);
    for (absl::Span<char> span : {place.values, place.gradient}) {
      EXPECT_EQ(std::count(span.begin(), span.end(), 0), span.size());
      if (tensor.type == DataType::kFloat32) continue;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(span.data()) % kArenaAlignment, 0u);
    }
    all.push_back(place.values);
    all.push_back(place.gradient);
  }
  EXPECT_EQ(made_->places()[1].values.data(), reinterpret_cast<char*>(arena_.vector().data() + 3));
  for (size_t i = 0; i < all.size(); ++i) std::fill(all[i].begin(), all[i].end(), static_cast<char>(i + 1));
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(std::count(all[i].begin(), all[i].end(), static_cast<char>(i + 1)), all[i].size()) << i;
  }
  EXPECT_EQ(made_->gradients().size(), 5u);
}

// The center's values arrive rounded, and the program's changes arrive in the vector. A pull that is too small for the
// type adds up until the value changes.
TEST_P(NarrowTensorsTest, SmallPullsAddUp) {
  const absl::Span<char> values = made_->places()[0].values;
  std::fill(arena_.vector().begin(), arena_.vector().end(), 1.0f);
  made_->Scatter();
  std::vector<uint16_t> ones = Rounded(DataType::kBFloat16, {1, 1, 1});
  EXPECT_EQ(std::memcmp(values.data(), ones.data(), 6), 0);
  const float pull = 1.0f / 1024;  // A bfloat16 at 1 has steps of 1/128.
  for (int i = 0; i < 8; ++i) {
    made_->Gather();
    for (float& value : arena_.vector()) value += pull;
    made_->Scatter();
  }
  ones = Rounded(DataType::kBFloat16, std::vector<float>(3, 1 + 1.0f / 128));
  EXPECT_EQ(std::memcmp(values.data(), ones.data(), 6), 0);
  EXPECT_EQ(arena_.vector()[0], 1 + 8 * pull);
  Set(DataType::kBFloat16, values, 7);
  made_->Gather();
  EXPECT_EQ(arena_.vector()[0], 7 + (8 * pull - 1.0f / 128));
  EXPECT_EQ(arena_.vector()[13], 1 + 8 * pull);
}

// Buffers are gathered and scattered by themselves. Gradients are widened where the servers step.
TEST_P(NarrowTensorsTest, BuffersAndGradients) {
  Set(DataType::kFloat16, made_->places()[5].values, 2);
  Set(DataType::kBFloat16, made_->places()[0].values, 3);
  made_->GatherBuffers();
  EXPECT_EQ(arena_.buffers()[0], 2);
  EXPECT_EQ(arena_.vector()[0], 0);
  arena_.buffers()[1] = 5;
  made_->ScatterBuffers();
  EXPECT_EQ(Widened(DataType::kFloat16, {As<uint16_t>(made_->places()[5].values)[1]})[0], 5);
  if (!widens()) return;
  Set(DataType::kBFloat16, made_->places()[4].gradient, 9);
  As<float>(made_->places()[1].gradient)[4] = 8;
  made_->WidenGradients();
  EXPECT_EQ(arena_.gradients()[13], 9);
  EXPECT_EQ(arena_.gradients()[9], 9);
  EXPECT_EQ(arena_.gradients()[7], 8);
  EXPECT_EQ(arena_.gradients()[0], 0);
}

// The collective allocation comes even if this rank's heap is full. Otherwise the other ranks would wait for it.
TEST(NarrowTensorsMemoryTest, AFullHeapLeavesNoRankWaiting) {
  const std::vector<TypedTensor> huge = {{DataType::kBFloat16, uint64_t{1} << 61, true}};
  int calls = 0;
  const auto shared = [&calls](uint64_t) -> absl::StatusOr<ArenaMemory> {
    ++calls;
    return ArenaMemory();
  };
  EXPECT_FALSE(NarrowTensors::Make(huge, false, *Arena::Make({}), shared).ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hooke
