#include "mpi_group/sockets/endpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hooke {
namespace {

HostAddress Address(uint8_t family, uint8_t last) {
  HostAddress address;
  address.family = family;
  address.prefix_bits = 24;
  address.megabits = 100000;
  address.bytes[0] = 10;
  address.bytes[family == 4 ? 3 : 15] = last;
  return address;
}

Endpoint EndpointAt(uint16_t port, const std::vector<HostAddress>& addresses) {
  return {uint64_t{0x123456789} + port, port, addresses};
}

void ExpectEqual(const Endpoint& a, const Endpoint& b) {
  EXPECT_EQ(a.identity, b.identity);
  EXPECT_EQ(a.port, b.port);
  ASSERT_EQ(a.addresses.size(), b.addresses.size());
  for (size_t i = 0; i < a.addresses.size(); ++i) {
    EXPECT_EQ(a.addresses[i], b.addresses[i]);
    EXPECT_EQ(a.addresses[i].prefix_bits, b.addresses[i].prefix_bits);
    EXPECT_EQ(a.addresses[i].megabits, b.addresses[i].megabits);
  }
}

// Endpoints are read back from their records, which hold only the addresses that there are.
TEST(EndpointTest, ThereAndBack) {
  const std::vector<Endpoint> endpoints = {EndpointAt(1, {}), EndpointAt(65535, {Address(4, 1), Address(6, 2)}),
                                           EndpointAt(80, {Address(4, 3)})};
  std::string records;
  for (const Endpoint& endpoint : endpoints) records += RecordOf(endpoint);
  EXPECT_EQ(records.size(), 3 * 11 + 2 * 10 + 22);
  const absl::StatusOr<std::vector<Endpoint>> read = ReadEndpoints(records, 3);
  ASSERT_EQ(read.status(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ExpectEqual((*read)[i], endpoints[i]);
}

// A record has the first addresses of a rank that has very many.
TEST(EndpointTest, TooManyAddresses) {
  std::vector<HostAddress> addresses(20, Address(4, 1));
  const absl::StatusOr<std::vector<Endpoint>> read = ReadEndpoints(RecordOf(EndpointAt(1, addresses)), 1);
  ASSERT_EQ(read.status(), absl::OkStatus());
  addresses.resize(Endpoint::kAddressesMax);
  ExpectEqual((*read)[0], EndpointAt(1, addresses));
}

// Bytes that are no records are refused.
TEST(EndpointTest, DamagedRecords) {
  const std::string record = RecordOf(EndpointAt(80, {Address(4, 1), Address(6, 2)}));
  for (size_t bytes = 0; bytes < record.size(); ++bytes) {
    EXPECT_EQ(ReadEndpoints(record.substr(0, bytes), 1).status().code(), absl::StatusCode::kInternal);
  }
  EXPECT_EQ(ReadEndpoints(record + "x", 1).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ReadEndpoints(record, 2).status().code(), absl::StatusCode::kInternal);
  std::string other = record;
  other[11] = 5;  // No family of addresses.
  EXPECT_EQ(ReadEndpoints(other, 1).status().code(), absl::StatusCode::kInternal);
  other = record;
  other[10] = 17;  // More addresses than a record holds.
  EXPECT_EQ(ReadEndpoints(other + std::string(1000, 4), 1).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace hooke
