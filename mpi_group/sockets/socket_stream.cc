#include "mpi_group/sockets/socket_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr uint64_t kHeader = sizeof(MessageHeader);
static_assert(std::is_trivially_copyable_v<MessageHeader> && kHeader == 24, "headers travel as bytes");

// Largest number of messages sent by one system call.
constexpr size_t kTogether = 8;

bool IsNothingNow(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

int16_t SocketStream::events() const {
  return static_cast<int16_t>((sends_.empty() ? 0 : POLLOUT) | (receives_.empty() ? 0 : POLLIN));
}

void SocketStream::Drop() {
  sends_.clear();
  receives_.clear();
}

absl::StatusOr<bool> SocketStream::Move() {
  if (!failure_.ok()) return failure_;
  const absl::StatusOr<bool> in = receives_.empty() ? false : Receive();
  if (!in.ok()) return failure_ = in.status();
  const absl::StatusOr<bool> out = MoveOut();
  if (!out.ok()) return out.status();
  return *in || *out;
}

absl::StatusOr<bool> SocketStream::MoveOut() {
  if (!failure_.ok()) return failure_;
  const absl::StatusOr<bool> out = sends_.empty() ? false : Send();
  if (!out.ok()) return failure_ = out.status();
  return *out;
}

absl::StatusOr<bool> SocketStream::Send() {
  std::array<iovec, 2 * kTogether> parts;
  size_t count = 0;
  for (size_t i = 0; i < std::min(sends_.size(), kTogether); ++i) {
    SocketMessage& message = *sends_[i];
    char* const header = reinterpret_cast<char*>(&message.header);
    if (message.moved < kHeader) parts[count++] = {header + message.moved, kHeader - message.moved};
    const uint64_t body = std::max(message.moved, kHeader) - kHeader;
    parts[count++] = {message.bytes + body, message.header.bytes - body};
  }
  msghdr call = {};
  call.msg_iov = parts.data();
  call.msg_iovlen = count;
  const ssize_t sent = sendmsg(socket_.get(), &call, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && IsNothingNow(errno)) return false;
  if (sent < 0) return Lost("sending to", errno);
  for (auto left = static_cast<uint64_t>(sent); left > 0;) {
    SocketMessage& message = *sends_.front();
    const uint64_t part = std::min(left, kHeader + message.header.bytes - message.moved);
    message.moved += part;
    left -= part;
    if (message.moved < kHeader + message.header.bytes) break;
    message.done = true;
    sends_.pop_front();
  }
  return sent > 0;
}

// Receives a header and its message's bytes in one system call, as far as they have come. If the header turns out to be
// wrong, some bytes behind it already lie in the message's memory, which is unspecified after an error.
absl::StatusOr<bool> SocketStream::Receive() {
  SocketMessage& message = *receives_.front();
  if (header_bytes_ == kHeader && message.moved < kHeader) {
    // LookForStray has read this header before the receive was started.
    absl::Status status = CheckArrived(message.header);
    if (!status.ok()) return status;
  }
  message.moved = std::max(message.moved, header_bytes_);
  std::array<iovec, 2> parts;
  size_t count = 0;
  if (header_bytes_ < kHeader) {
    parts[count++] = {reinterpret_cast<char*>(&arrived_) + header_bytes_, kHeader - header_bytes_};
  }
  const uint64_t body = std::max(message.moved, kHeader) - kHeader;
  parts[count++] = {message.bytes + body, message.header.bytes - body};
  msghdr call = {};
  call.msg_iov = parts.data();
  call.msg_iovlen = count;
  const ssize_t received = recvmsg(socket_.get(), &call, MSG_DONTWAIT);
  if (received < 0 && IsNothingNow(errno)) return false;
  if (received <= 0) return Lost("receiving from", received == 0 ? 0 : errno);
  const bool had_header = header_bytes_ == kHeader;
  message.moved += static_cast<uint64_t>(received);
  header_bytes_ = std::min(message.moved, kHeader);
  if (!had_header && header_bytes_ == kHeader) {
    absl::Status status = CheckArrived(message.header);
    if (!status.ok()) return status;
  }
  if (message.moved == kHeader + message.header.bytes) {
    message.done = true;
    header_bytes_ = 0;
    receives_.pop_front();
  }
  return true;
}

absl::Status SocketStream::LookForStray(uint64_t call, uint32_t fingerprint) {
  if (!receives_.empty()) return absl::OkStatus();
  if (header_bytes_ < kHeader) {
    const ssize_t received =
        recv(socket_.get(), reinterpret_cast<char*>(&arrived_) + header_bytes_, kHeader - header_bytes_, MSG_DONTWAIT);
    if (received <= 0) return absl::OkStatus();
    header_bytes_ += static_cast<uint64_t>(received);
    if (header_bytes_ < kHeader) return absl::OkStatus();
  }
  if (arrived_.call > call || (arrived_.call == call && arrived_.fingerprint == fingerprint)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", peer_, arrived_.call == call ? " is in another call than this rank" : " sent a message ",
                   arrived_.call == call ? "" : "that none of this rank's calls took",
                   "; all ranks must call the same operations in the same order"));
}

absl::Status SocketStream::CheckArrived(const MessageHeader& expected) const {
  if (arrived_.call != expected.call || arrived_.fingerprint != expected.fingerprint) {
    return absl::InvalidArgumentError(absl::StrCat("receiving from rank ", peer_,
                                                   ", which is in another call than this rank",
                                                   "; all ranks must call the same operations in the same order"));
  }
  if (arrived_.bytes != expected.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("receiving from rank ", peer_, ": ", arrived_.bytes,
                                                   " bytes came where ", expected.bytes, " were expected; all ranks ",
                                                   "must call the same operations with the same sizes"));
  }
  return absl::OkStatus();
}

absl::Status SocketStream::Lost(const char* what, int error) const {
  const std::string where = absl::StrCat(what, " rank ", peer_);
  if (error == 0 || error == ECONNRESET || error == EPIPE) {
    return absl::UnavailableError(absl::StrCat(where, ", which has left the group"));
  }
  return absl::UnavailableError(absl::ErrnoToStatus(error, absl::StrCat(where, ": the connection failed")).message());
}

}  // namespace hooke
