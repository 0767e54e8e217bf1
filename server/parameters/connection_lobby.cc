#include "server/parameters/connection_lobby.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "wire/frame.h"

namespace hooke {
namespace {

// How many bytes are read at a time, and dropped, from a connection that is being refused.
constexpr size_t kDropBytes = 64 << 10;

// Returns whether the connection has ended: the peer closed it, or it is broken.
bool HasEnded(ssize_t received) { return received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR); }

}  // namespace

ConnectionLobby::~ConnectionLobby() {
  while (CloseOldest()) {
  }
}

void ConnectionLobby::Admit(absl::Time now, int descriptor) {
  if (waiting_.size() >= limits_.waiting_max && !waiting_.empty()) {
    close(waiting_.front().descriptor);
    waiting_.pop_front();
  }
  waiting_.push_back({descriptor, now + limits_.opening_timeout, std::string(kOpeningHeaderBytes, '\0'), 0});
}

void ConnectionLobby::Refuse(absl::Time now, int descriptor, const absl::Status& refusal) {
  const std::string message = EncodeRefusal(refusal);
  const ssize_t sent = send(descriptor, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(message.size())) {
    close(descriptor);
    return;
  }
  shutdown(descriptor, SHUT_WR);
  if (leaving_.size() >= limits_.leaving_max && !leaving_.empty()) {
    close(leaving_.front().descriptor);
    leaving_.pop_front();
  }
  leaving_.push_back({descriptor, now + limits_.leaving_timeout, 0});
}

bool ConnectionLobby::CloseOldest() {
  if (!leaving_.empty()) {
    close(leaving_.front().descriptor);
    leaving_.pop_front();
    return true;
  }
  if (waiting_.empty()) return false;
  close(waiting_.front().descriptor);
  waiting_.pop_front();
  return true;
}

void ConnectionLobby::AppendTo(std::vector<pollfd>& polled) const {
  for (const Waiting& waiting : waiting_) polled.push_back({waiting.descriptor, POLLIN, 0});
  for (const Leaving& leaving : leaving_) polled.push_back({leaving.descriptor, POLLIN, 0});
}

absl::Time ConnectionLobby::deadline() const {
  absl::Time earliest = absl::InfiniteFuture();
  if (!waiting_.empty()) earliest = waiting_.front().until;
  if (!leaving_.empty()) earliest = std::min(earliest, leaving_.front().until);
  return earliest;
}

std::vector<ConnectionLobby::Opening> ConnectionLobby::Receive(absl::Time now, absl::Span<const pollfd> polled) {
  std::vector<Opening> openings;
  size_t at = 0;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    Progress progress = Progress::kGoesOn;
    absl::StatusOr<v1::Sender> sender;
    if (polled[at++].revents != 0) progress = ReceiveOpening(*waiting, sender);
    if (progress == Progress::kComplete) openings.push_back({waiting->descriptor, std::move(sender)});
    if (progress == Progress::kGoesOn && now >= waiting->until) progress = Progress::kEnded;
    if (progress == Progress::kEnded) close(waiting->descriptor);
    waiting = progress == Progress::kGoesOn ? std::next(waiting) : waiting_.erase(waiting);
  }
  for (auto leaving = leaving_.begin(); leaving != leaving_.end();) {
    Progress progress = Progress::kGoesOn;
    if (polled[at++].revents != 0) progress = Drop(*leaving);
    if (now >= leaving->until) progress = Progress::kEnded;
    if (progress == Progress::kEnded) close(leaving->descriptor);
    leaving = progress == Progress::kGoesOn ? std::next(leaving) : leaving_.erase(leaving);
  }
  return openings;
}

// Reads no byte beyond the opening, because the session reads what follows.
ConnectionLobby::Progress ConnectionLobby::ReceiveOpening(Waiting& waiting, absl::StatusOr<v1::Sender>& sender) {
  while (waiting.received < waiting.opening.size()) {
    const ssize_t received = recv(waiting.descriptor, &waiting.opening[waiting.received],
                                  waiting.opening.size() - waiting.received, MSG_DONTWAIT);
    if (HasEnded(received)) return Progress::kEnded;
    if (received < 0) return Progress::kGoesOn;
    waiting.received += static_cast<size_t>(received);
    if (waiting.received != kOpeningHeaderBytes) continue;
    const absl::StatusOr<size_t> tail_bytes = OpeningTailBytes(waiting.opening);
    if (!tail_bytes.ok()) {
      sender = tail_bytes.status();
      return Progress::kComplete;
    }
    waiting.opening.resize(kOpeningHeaderBytes + *tail_bytes);
  }
  sender = DecodeOpening(waiting.opening);
  return Progress::kComplete;
}

ConnectionLobby::Progress ConnectionLobby::Drop(Leaving& leaving) const {
  char bytes[kDropBytes];
  const ssize_t received = recv(leaving.descriptor, bytes, sizeof bytes, MSG_DONTWAIT);
  if (HasEnded(received)) return Progress::kEnded;
  if (received > 0) leaving.dropped += static_cast<uint64_t>(received);
  return leaving.dropped > limits_.dropped_bytes_max ? Progress::kEnded : Progress::kGoesOn;
}

}  // namespace hooke
