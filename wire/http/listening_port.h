#ifndef HOOKE_WIRE_HTTP_LISTENING_PORT_H_
#define HOOKE_WIRE_HTTP_LISTENING_PORT_H_

// A TCP port that a server listens on.

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "wire/host_port.h"

namespace hooke {

// Owns a listening descriptor. accept4 on it never blocks.
class ListeningPort {
 public:
  // Listens at `address`; port 0 picks a free port. No other process may listen there too. UNAVAILABLE: it cannot
  // listen. The message says why, and names `flag`, like "--metrics", for another address.
  static absl::StatusOr<ListeningPort> Open(const HostPort& address, absl::string_view flag);
  ListeningPort(ListeningPort&& other) noexcept;
  ListeningPort& operator=(ListeningPort&& other) = delete;
  ~ListeningPort();

  int descriptor() const { return descriptor_; }
  uint16_t port() const { return port_; }

 private:
  ListeningPort(int descriptor, uint16_t port) : descriptor_(descriptor), port_(port) {}

  int descriptor_ = -1;
  uint16_t port_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_HTTP_LISTENING_PORT_H_
