#ifndef HOOKE_WIRE_ADDRESS_FAULT_H_
#define HOOKE_WIRE_ADDRESS_FAULT_H_

// Checks the address at which a program is to serve, as flags such as --listen and --metrics give it. Pure.

#include <string>

namespace hooke {

// Returns an empty text if `address` is good: empty, or HOST:PORT. Otherwise returns a text that says what is wrong and
// what is allowed.
std::string AddressFault(const std::string& address);

}  // namespace hooke

#endif  // HOOKE_WIRE_ADDRESS_FAULT_H_
