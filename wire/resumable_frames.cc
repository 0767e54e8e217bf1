#include "wire/resumable_frames.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "wire/stream_options.h"

namespace hooke {
namespace {

// The most pieces for which one call waits. A peer that sends a byte at a time thus holds a thread only for a moment.
constexpr int kWaitsMax = 64;

absl::Status Broken(absl::string_view doing) {
  return absl::UnavailableError(absl::StrCat(doing, ": ", std::strerror(errno)));
}

}  // namespace

ResumableFrames::ResumableFrames(int descriptor, absl::Duration patience) : descriptor_(descriptor) {
  SetStreamOptions(descriptor);
  const timeval wait = absl::ToTimeval(patience);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

ResumableFrames::~ResumableFrames() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ResumableFrames::Shutdown() { shutdown(descriptor_, SHUT_RDWR); }

int ResumableFrames::Release() { return std::exchange(descriptor_, -1); }

absl::StatusOr<std::optional<ValuesHeader>> ResumableFrames::ReceiveHeader(Waiting waiting) {
  absl::StatusOr<bool> received = Receive(absl::MakeSpan(header_), waiting);
  if (!received.ok()) return received.status();
  if (!*received) return std::nullopt;
  const absl::string_view start(header_, sizeof header_);
  if (IsRefusal(start)) return absl::InvalidArgumentError("a refusal, which is a server's");
  absl::StatusOr<ValuesHeader> header = DecodeNextHeader(start);
  if (!header.ok()) return header.status();
  return *header;
}

absl::StatusOr<bool> ResumableFrames::ReceivePayload(absl::Span<char> payload, Waiting waiting) {
  return Receive(payload, waiting);
}

absl::StatusOr<bool> ResumableFrames::Receive(absl::Span<char> bytes, Waiting waiting) {
  int waits = waiting == Waiting::kBriefly ? kWaitsMax : 0;
  while (done_ < bytes.size()) {
    const ssize_t received =
        recv(descriptor_, bytes.data() + done_, bytes.size() - done_, waits-- > 0 ? 0 : MSG_DONTWAIT);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) return false;
    if (received < 0) return Broken("receiving");
    if (received == 0) return absl::UnavailableError("the peer has closed the connection");
    done_ += static_cast<size_t>(received);
  }
  done_ = 0;
  return true;
}

absl::StatusOr<bool> ResumableFrames::SendPayload(const ValuesHeader& header, absl::Span<const char> payload,
                                                  Waiting waiting) {
  char start[kValuesHeaderBytes];
  EncodeValuesHeader(header, absl::MakeSpan(start));
  int waits = waiting == Waiting::kBriefly ? kWaitsMax : 0;
  while (done_ < sizeof start + payload.size()) {
    const size_t of_start = std::min(done_, sizeof start);
    const size_t of_payload = done_ - of_start;
    // The cast is safe: sendmsg does not write to the memory it sends.
    iovec parts[] = {{start + of_start, sizeof start - of_start},
                     {const_cast<char*>(payload.data()) + of_payload, payload.size() - of_payload}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(descriptor_, &message, MSG_NOSIGNAL | (waits-- > 0 ? 0 : MSG_DONTWAIT));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent < 0) return Broken("sending");
    done_ += static_cast<size_t>(sent);
  }
  done_ = 0;
  return true;
}

}  // namespace hooke
