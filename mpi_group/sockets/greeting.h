#ifndef HOOKE_MPI_GROUP_SOCKETS_GREETING_H_
#define HOOKE_MPI_GROUP_SOCKETS_GREETING_H_

// The first message of each end of a new connection. The connecting end sends it first.

#include <array>
#include <cstdint>

namespace hooke {

using GroupToken = std::array<uint8_t, 16>;

struct Greeting {
  static constexpr std::array<char, 8> kMagic = {'h', 'o', 'o', 'k', 'e', ' ', '1', '\n'};

  std::array<char, 8> magic = kMagic;
  GroupToken token = {};
  int32_t from = -1;
  int32_t to = -1;

  friend bool operator==(const Greeting& a, const Greeting& b) {
    return a.magic == b.magic && a.token == b.token && a.from == b.from && a.to == b.to;
  }
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_GREETING_H_
