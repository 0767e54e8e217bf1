#include "mpi_group/sockets/socket_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpi_group/sockets/file_descriptor.h"

namespace hooke {
namespace {

using testing::HasSubstr;

// Returns the two ends of a connection.
std::array<FileDescriptor, 2> Connected() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

SocketMessage MessageOf(uint64_t call, std::string& bytes, bool receives) {
  SocketMessage message;
  message.header.call = call;
  message.header.bytes = bytes.size();
  message.bytes = bytes.data();
  message.receives = receives;
  return message;
}

// Bytes behind a refused header are never taken for a message, however often Move() is called.
TEST(SocketStreamTest, RefusesForGood) {
  std::array<FileDescriptor, 2> ends = Connected();
  SocketStream stream(std::move(ends[0]), /*peer=*/7);
  std::string memory(50, '.');
  SocketMessage message = MessageOf(1, memory, /*receives=*/true);
  stream.Start(&message);
  const std::string garbage(40, 'x');
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(send(ends[1].get(), garbage.data(), garbage.size(), 0), 40);
    const absl::Status status = stream.Move().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("receiving from rank 7, which is in another call"));
  }
  EXPECT_EQ(stream.MoveOut().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(message.done);
}

// MoveOut() does not read incoming bytes.
TEST(SocketStreamTest, MoveOutTakesNothing) {
  std::array<FileDescriptor, 2> ends = Connected();
  SocketStream stream(std::move(ends[0]), /*peer=*/1);
  SocketStream peer(std::move(ends[1]), /*peer=*/0);
  std::string there = "there";
  std::string back = "back";
  std::string received(back.size(), '.');
  SocketMessage in = MessageOf(1, received, /*receives=*/true);
  SocketMessage out = MessageOf(1, there, /*receives=*/false);
  SocketMessage peers = MessageOf(1, back, /*receives=*/false);
  stream.Start(&in);
  stream.Start(&out);
  peer.Start(&peers);
  EXPECT_TRUE(*peer.MoveOut());
  EXPECT_TRUE(*stream.MoveOut());
  EXPECT_TRUE(out.done);
  EXPECT_EQ(in.moved, 0);
  EXPECT_FALSE(*stream.MoveOut());
  EXPECT_TRUE(*stream.Move());
  EXPECT_TRUE(in.done);
  EXPECT_EQ(received, back);
}

}  // namespace
}  // namespace hooke
