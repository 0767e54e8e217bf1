#ifndef HOOKE_TESTS_BENCHMARKS_EXCHANGE_TCP_H_
#define HOOKE_TESTS_BENCHMARKS_EXCHANGE_TCP_H_

// The plainest TCP: blocking sockets that send and receive whole buffers. For the rival `sockets`.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hooke {

// A socket; closed with the object. Two threads may use one, one to send and one to receive.
class Tcp {
 public:
  explicit Tcp(int descriptor) : descriptor_(descriptor) {}
  Tcp(Tcp&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Tcp& operator=(Tcp&&) = delete;
  ~Tcp();

  // "127.0.0.1:7411".
  static absl::StatusOr<Tcp> Connect(const std::string& address);
  // On 127.0.0.1, on a free port.
  static absl::StatusOr<Tcp> Listen(uint16_t* port);
  absl::StatusOr<Tcp> Accept() const;

  absl::Status Send(const char* bytes, size_t count) const;
  absl::Status Receive(char* bytes, size_t count) const;
  // At least one byte; 0 at the end of the stream.
  absl::StatusOr<size_t> ReceiveSome(char* bytes, size_t most) const;

 private:
  int descriptor_;
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_EXCHANGE_TCP_H_
