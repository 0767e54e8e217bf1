#include "client/text/links_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::HasSubstr;

v1::NodeStatus Worker(const std::string& name, const std::string& address) {
  v1::NodeStatus node;
  node.set_name(name);
  node.set_kind(v1::NodeStatus::WORKER);
  node.set_site("hpc");
  node.set_mpi("openmpi");
  node.set_alive(true);
  if (address.empty()) return node;
  v1::NodeInterface* interface = node.add_interfaces();
  interface->set_name("eth0");
  interface->set_address(address);
  return node;
}

v1::NodeLink Link(const std::string& from, const std::string& to) {
  v1::NodeLink link;
  link.set_from(from);
  link.set_to(to);
  link.set_round_trip_seconds(0.000123);
  link.set_bytes_per_second(117e6);
  link.set_measured_unix_ms(58'000);
  return link;
}

// Shows each worker's addresses, what was measured, and the pairs that were not. A worker without an address, of
// another site, that is gone, or on the same node takes no part in a pair.
TEST(LinksTextTest, Tables) {
  v1::ListNodesResponse nodes;
  v1::NodeStatus server;
  server.set_kind(v1::NodeStatus::SERVER);
  *nodes.add_nodes() = server;
  *nodes.add_nodes() = Worker("a", "10.0.0.1");
  nodes.mutable_nodes(1)->mutable_interfaces(0)->set_megabits(1000);
  *nodes.mutable_nodes(1)->add_interfaces() = Worker("", "10.0.1.1").interfaces(0);
  nodes.mutable_nodes(1)->mutable_interfaces(1)->set_name("ib0");
  *nodes.add_nodes() = Worker("b", "10.0.0.2");
  *nodes.add_nodes() = Worker("c", "10.0.0.3");
  *nodes.add_nodes() = Worker("d", "");
  *nodes.add_nodes() = Worker("e", "10.0.0.5");
  nodes.mutable_nodes(5)->set_site("cloud");
  *nodes.add_nodes() = Worker("f", "10.0.0.6");
  nodes.mutable_nodes(6)->set_alive(false);
  *nodes.add_nodes() = Worker("g", "10.0.0.3");
  *nodes.add_links() = Link("b", "a");
  *nodes.add_links() = Link("b", "g");
  nodes.mutable_links(1)->set_bytes_per_second(0);
  EXPECT_EQ(LinksText(nodes, absl::FromUnixSeconds(100)),
            "WORKER  SITE   ADDRESS   INTERFACE  SPEED\n"
            "a       hpc    10.0.0.1  eth0       1.0 Gbit/s\n"
            "a       hpc    10.0.1.1  ib0        -\n"
            "b       hpc    10.0.0.2  eth0       -\n"
            "c       hpc    10.0.0.3  eth0       -\n"
            "d       hpc    -         -          -\n"
            "e       cloud  10.0.0.5  eth0       -\n"
            "f       hpc    10.0.0.6  eth0       -\n"
            "g       hpc    10.0.0.3  eth0       -\n"
            "\n"
            "FROM  TO  ROUND TRIP  BANDWIDTH     MEASURED\n"
            "b     a   0.123 ms    936.0 Mbit/s  0:42 ago\n"
            "b     g   0.123 ms    -             0:42 ago\n"
            "a     c   -           -             not yet: no group has run on both\n"
            "a     g   -           -             not yet: no group has run on both\n"
            "b     c   -           -             not yet: no group has run on both\n");
}

// A large site's pairs are counted, not listed.
TEST(LinksTextTest, ManyPairs) {
  v1::ListNodesResponse nodes;
  EXPECT_THAT(LinksText(nodes, absl::FromUnixSeconds(100)), HasSubstr("\nno two workers of a site can run a group"));
  for (int i = 0; i < 10; ++i) *nodes.add_nodes() = Worker(absl::StrCat("w", i), absl::StrCat("10.0.0.", i));
  EXPECT_THAT(LinksText(nodes, absl::FromUnixSeconds(100)),
              testing::EndsWith("and 25 more pairs that no group has run on\n"));
}

// JSON has the protocol's names and units.
TEST(LinksTextTest, Json) {
  v1::NodeLink link = Link("a", "b");
  EXPECT_EQ(LinkToJson(link).dump(),
            "{\"from\":\"a\",\"to\":\"b\",\"round_trip_seconds\":0.000123,\"bytes_per_second\":117000000.0,"
            "\"measured_unix_ms\":58000}");
  link.set_bytes_per_second(0);
  EXPECT_TRUE(LinkToJson(link)["bytes_per_second"].is_null());
}

}  // namespace
}  // namespace hooke
