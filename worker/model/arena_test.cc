#include "worker/model/arena.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Parameters and buffers are adjacent, so one span is the whole vector. All values are zero, and all parts are aligned.
TEST(ArenaTest, ParametersAndBuffersAreOneVector) {
  absl::StatusOr<Arena> arena = Arena::Make({.parameters = 100, .buffers = 7, .statistics = 2});
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_EQ(arena->vector().size(), 107u);
  EXPECT_EQ(arena->parameters().data(), arena->vector().data());
  EXPECT_EQ(arena->buffers().data(), arena->vector().data() + 100);
  EXPECT_EQ(arena->buffers().size(), 7u);
  EXPECT_EQ(arena->gradients().size(), 100u);
  EXPECT_EQ(arena->statistics().size(), 2u);
  EXPECT_THAT(arena->vector(), Each(0.0f));
  EXPECT_THAT(arena->gradients(), Each(0.0f));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->vector().data()) % kArenaAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->gradients().data()) % kArenaAlignment, 0u);
}

// An arena may have no buffers, or nothing at all.
TEST(ArenaTest, EmptyPartsAreAllowed) {
  absl::StatusOr<Arena> arena = Arena::Make({.parameters = 16, .buffers = 0});
  ASSERT_TRUE(arena.ok());
  EXPECT_TRUE(arena->buffers().empty());
  EXPECT_TRUE(Arena::Make({}).ok());
}

// The allocator's memory is used and is released with the arena. Memory that is too short is refused.
TEST(ArenaTest, TakesMemoryFromAnAllocator) {
  int alive = 0;
  auto counted = [&alive](uint64_t values) -> absl::StatusOr<ArenaMemory> {
    absl::StatusOr<ArenaMemory> memory = AllocateOnHeap(values);
    ++alive;
    memory->owner = std::shared_ptr<void>(memory->owner.get(), [&alive, owner = memory->owner](void*) { --alive; });
    return memory;
  };
  {
    absl::StatusOr<Arena> arena = Arena::Make({.parameters = 4, .buffers = 4}, counted);
    ASSERT_TRUE(arena.ok());
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);

  auto shorted = [](uint64_t values) { return AllocateOnHeap(values - 1); };
  absl::StatusOr<Arena> arena = Arena::Make({.parameters = 4, .buffers = 4}, shorted);
  EXPECT_EQ(arena.status().code(), absl::StatusCode::kInvalidArgument);
}

// For a size that no machine has, the result is an error that names the size. The process does not crash.
TEST(ArenaTest, TooLargeIsAnError) {
  absl::StatusOr<ArenaMemory> memory = AllocateOnHeap(uint64_t{1} << 60);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(memory.status().message()), HasSubstr("1152921504606846976"));
}

}  // namespace
}  // namespace hooke
