#ifndef HOOKE_SERVER_PARAMETERS_LISTENING_SOCKETS_H_
#define HOOKE_SERVER_PARAMETERS_LISTENING_SOCKETS_H_

// The two sockets on which DirectExchanges accepts connections: one for TCP, and a Unix socket for ranks of this host.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hooke {

// Owns the two descriptors. accept4 on them never blocks.
class ListeningSockets {
 public:
  // Listens on a free TCP port of `host`, an address or a name of this host, and on a Unix socket with a random name.
  // UNAVAILABLE: listening failed.
  static absl::StatusOr<ListeningSockets> Open(const std::string& host);
  ListeningSockets(ListeningSockets&& other) noexcept;
  ListeningSockets& operator=(ListeningSockets&& other) = delete;
  ~ListeningSockets();

  int tcp() const { return tcp_; }
  int local() const { return local_; }
  uint16_t port() const { return port_; }                        // The TCP port.
  const std::string& local_name() const { return local_name_; }  // The Unix socket's name: LocateResponse.local_name.

 private:
  ListeningSockets() = default;

  int tcp_ = -1;
  int local_ = -1;
  uint16_t port_ = 0;
  std::string local_name_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_LISTENING_SOCKETS_H_
