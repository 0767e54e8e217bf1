#ifndef HOOKE_SERVER_PARAMETERS_LISTENING_SOCKETS_H_
#define HOOKE_SERVER_PARAMETERS_LISTENING_SOCKETS_H_

// The two sockets where DirectExchanges takes connections.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hooke {

// Owns both descriptors. accept4 on them never blocks.
class ListeningSockets {
 public:
  // At a free TCP port of `host`, an address or a name of this host, and at a random name. UNAVAILABLE.
  static absl::StatusOr<ListeningSockets> Open(const std::string& host);
  ListeningSockets(ListeningSockets&& other) noexcept;
  ListeningSockets& operator=(ListeningSockets&& other) = delete;
  ~ListeningSockets();

  int tcp() const { return tcp_; }
  int local() const { return local_; }
  uint16_t port() const { return port_; }                        // TCP.
  const std::string& local_name() const { return local_name_; }  // As LocateResponse.local_name.

 private:
  ListeningSockets() = default;

  int tcp_ = -1;
  int local_ = -1;
  uint16_t port_ = 0;
  std::string local_name_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_LISTENING_SOCKETS_H_
