#include "wire/address_fault.h"

#include "wire/host_port.h"

namespace hooke {

std::string AddressFault(const std::string& address) {
  return address.empty() ? "" : std::string(ParseHostPort(address).status().message());
}

}  // namespace hooke
