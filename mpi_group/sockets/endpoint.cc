#include "mpi_group/sockets/endpoint.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

size_t BytesOf(uint8_t family) { return family == 4 ? 4 : 16; }

// Records hold raw bytes, because the ranks of a group run the same program.
template <typename Value>
void Append(std::string& record, const Value& value) {
  record.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Takes bytes from the front of `records`; false if there are too few.
bool Take(absl::string_view& records, void* to, size_t bytes) {
  if (records.size() < bytes) return false;
  std::memcpy(to, records.data(), bytes);
  records.remove_prefix(bytes);
  return true;
}

template <typename Value>
bool Take(absl::string_view& records, Value& value) {
  return Take(records, &value, sizeof(value));
}

bool TakeAddress(absl::string_view& records, HostAddress& address) {
  if (!Take(records, address.family) || (address.family != 4 && address.family != 6)) return false;
  return Take(records, address.prefix_bits) && Take(records, address.megabits) &&
         Take(records, address.bytes.data(), BytesOf(address.family));
}

bool TakeEndpoint(absl::string_view& records, Endpoint& endpoint) {
  uint8_t addresses = 0;
  if (!Take(records, endpoint.identity) || !Take(records, endpoint.port) || !Take(records, addresses)) return false;
  if (addresses > Endpoint::kAddressesMax) return false;
  endpoint.addresses.resize(addresses);
  return std::all_of(endpoint.addresses.begin(), endpoint.addresses.end(),
                     [&records](HostAddress& address) { return TakeAddress(records, address); });
}

}  // namespace

std::string RecordOf(const Endpoint& endpoint) {
  std::string record;
  Append(record, endpoint.identity);
  Append(record, endpoint.port);
  const size_t addresses = std::min(endpoint.addresses.size(), Endpoint::kAddressesMax);
  Append(record, static_cast<uint8_t>(addresses));
  for (size_t i = 0; i < addresses; ++i) {
    const HostAddress& address = endpoint.addresses[i];
    Append(record, address.family);
    Append(record, address.prefix_bits);
    Append(record, address.megabits);
    record.append(reinterpret_cast<const char*>(address.bytes.data()), BytesOf(address.family));
  }
  return record;
}

absl::StatusOr<std::vector<Endpoint>> ReadEndpoints(absl::string_view records, size_t count) {
  std::vector<Endpoint> endpoints(count);
  for (size_t i = 0; i < count; ++i) {
    if (TakeEndpoint(records, endpoints[i])) continue;
    return absl::InternalError(absl::StrCat("record ", i, " of ", count, " listening ranks is damaged"));
  }
  if (!records.empty()) return absl::InternalError(absl::StrCat(records.size(), " bytes follow the last record"));
  return endpoints;
}

}  // namespace hooke
