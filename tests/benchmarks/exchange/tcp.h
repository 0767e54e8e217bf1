#ifndef HOOKE_TESTS_BENCHMARKS_EXCHANGE_TCP_H_
#define HOOKE_TESTS_BENCHMARKS_EXCHANGE_TCP_H_

// Plain TCP for the rival `sockets`: blocking sockets that send and receive whole buffers.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hooke {

// Owns a socket. Two threads may use it, one to send and one to receive.
class Tcp {
 public:
  explicit Tcp(int descriptor) : descriptor_(descriptor) {}
  Tcp(Tcp&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Tcp& operator=(Tcp&&) = delete;
  ~Tcp();

  // Connects to an address such as "127.0.0.1:7411".
  static absl::StatusOr<Tcp> Connect(const std::string& address);
  // Listens on a free port of 127.0.0.1 and writes its number to `port`.
  static absl::StatusOr<Tcp> Listen(uint16_t* port);
  absl::StatusOr<Tcp> Accept() const;

  absl::Status Send(const char* bytes, size_t count) const;
  absl::Status Receive(char* bytes, size_t count) const;
  // Receives at least one byte; returns 0 at the end of the stream.
  absl::StatusOr<size_t> ReceiveSome(char* bytes, size_t most) const;

 private:
  int descriptor_;
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_EXCHANGE_TCP_H_
