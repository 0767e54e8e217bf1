#include "wire/frame_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hooke {
namespace {

std::vector<float> Count(uint64_t values) {
  std::vector<float> all(values);
  std::iota(all.begin(), all.end(), 1.0f);
  return all;
}

grpc::ByteBuffer Made(FramePool& pool, const ValuesHeader& header) {
  OutgoingFrame frame = pool.Make(PayloadBytes(header));
  const std::vector<float> values = Count(header.values);
  std::memcpy(frame.payload().data(), values.data(), frame.payload().size());
  return std::move(frame).Seal(header);
}

std::string Flatten(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// A message arrives unchanged in any pieces, even odd and empty ones. The test makes 200 random cuts.
TEST(FrameBuffer, AnySlices) {
  FramePool pool;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const uint64_t count = 1 + random() % 40;
    const std::string bytes = Flatten(Made(pool, {7, 9, count}));
    std::vector<grpc::Slice> slices;
    for (size_t at = 0; at < bytes.size();) {
      const size_t length = std::min<size_t>(random() % 12, bytes.size() - at);
      slices.emplace_back(bytes.substr(at, length));
      at += length;
    }
    const IncomingFrame frame = IncomingFrame::Parse(grpc::ByteBuffer(slices.data(), slices.size())).value();
    EXPECT_EQ(frame.kind(), FrameKind::kValues);
    const ValuesHeader header = frame.Header().value();
    EXPECT_EQ(header.sequence, 7u);
    EXPECT_EQ(header.first, 9u);
    std::vector<float> values(header.values);
    frame.CopyValues(absl::MakeSpan(values));
    ASSERT_EQ(values, Count(count));
  }
}

// Memory is aligned, and reused once its message is destroyed. A larger message gets larger memory.
TEST(FrameBuffer, MemoryIsUsedAgain) {
  FramePool pool;
  const char* first = nullptr;
  {
    OutgoingFrame frame = pool.Make(4000);
    first = frame.payload().data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  }
  EXPECT_EQ(pool.Make(40).payload().data(), first);
  OutgoingFrame small = pool.Make(4000);
  EXPECT_EQ(small.payload().data(), first);
  EXPECT_NE(pool.Make(4000).payload().data(), first);
  EXPECT_EQ(pool.Make(400000).payload().size(), 400000u);
  EXPECT_EQ(pool.Make(400001).payload().size(), 400001u);
}

// A message may be made in one thread, dropped in another, and outlive its pool.
TEST(FrameBuffer, MessagesOutliveThePool) {
  std::vector<std::thread> droppers;
  {
    FramePool pool;
    for (int i = 0; i < 100; ++i) {
      const uint64_t count = 1 + static_cast<uint64_t>(i) * 10;
      droppers.emplace_back([message = Made(pool, {1, 0, count}), count] {
        std::vector<float> values(count);
        IncomingFrame::Parse(message).value().CopyValues(absl::MakeSpan(values));
        EXPECT_EQ(values, Count(count));
      });
    }
  }
  for (std::thread& dropper : droppers) dropper.join();
}

// Empty messages and messages of an unknown kind are refused.
TEST(FrameBuffer, RefusesWhatIsNoMessage) {
  const grpc::Slice odd(std::string("\x09garbage"));
  EXPECT_EQ(IncomingFrame::Parse(grpc::ByteBuffer(&odd, 1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(IncomingFrame::Parse(grpc::ByteBuffer(&odd, 0)).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
