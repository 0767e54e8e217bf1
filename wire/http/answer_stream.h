#ifndef HOOKE_WIRE_HTTP_ANSWER_STREAM_H_
#define HOOKE_WIRE_HTTP_ANSWER_STREAM_H_

// A connection as cpp-httplib reads and writes it, with a deadline.

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "clocks/steady_time.h"

namespace hooke {

// Does not own the descriptor, which is non-blocking. For one thread.
class AnswerStream final : public httplib::Stream {
 public:
  // `received` are the bytes that have been read already. After `deadline`, on SteadyTime's clock, all calls fail.
  AnswerStream(int descriptor, std::string received, absl::Time deadline)
      : descriptor_(descriptor), received_(std::move(received)), deadline_(deadline) {}

  // From now on the deadline is `within` away.
  void Extend(absl::Duration within) { deadline_ = SteadyTime() + within; }

  // Whether nobody gets what is written: the client has closed the connection, or its half of it, or this side has shut
  // it down.
  bool IsGone() const {
    pollfd polled = {descriptor_, POLLRDHUP, 0};
    return poll(&polled, 1, 0) > 0;
  }

  bool is_readable() const override { return at_ < received_.size() || Await(POLLIN); }
  bool is_writable() const override { return Await(POLLOUT); }

  ssize_t read(char* to, size_t size) override {
    if (at_ < received_.size()) {
      const size_t count = std::min(size, received_.size() - at_);
      std::memcpy(to, received_.data() + at_, count);
      at_ += count;
      return static_cast<ssize_t>(count);
    }
    while (Await(POLLIN)) {
      const ssize_t count = recv(descriptor_, to, size, 0);
      if (count >= 0 || !IsTemporary()) return count;
    }
    return -1;
  }

  ssize_t write(const char* from, size_t size) override {
    while (Await(POLLOUT)) {
      const ssize_t count = send(descriptor_, from, size, MSG_NOSIGNAL);
      if (count >= 0 || !IsTemporary()) return count;
    }
    return -1;
  }

  // httplib asks for addresses, but no page uses them.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return descriptor_; }

 private:
  static bool IsTemporary() { return errno == EAGAIN || errno == EINTR; }

  bool Await(short events) const {
    while (true) {
      const absl::Duration left = deadline_ - SteadyTime();
      if (left <= absl::ZeroDuration()) return false;
      pollfd polled = {descriptor_, events, 0};
      const int ready = poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  const int descriptor_;
  const std::string received_;
  absl::Time deadline_;
  size_t at_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_HTTP_ANSWER_STREAM_H_
