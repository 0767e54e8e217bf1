#ifndef HOOKE_WIRE_ADDRESS_FAULT_H_
#define HOOKE_WIRE_ADDRESS_FAULT_H_

// What is wrong with the address in a flag at whose place a program serves, such as --listen or --metrics. Pure.

#include <string>

namespace hooke {

// Returns an empty text if `address` is good: empty, or HOST:PORT. Otherwise what is wrong and allowed.
std::string AddressFault(const std::string& address);

}  // namespace hooke

#endif  // HOOKE_WIRE_ADDRESS_FAULT_H_
