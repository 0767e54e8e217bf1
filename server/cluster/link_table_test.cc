#include "server/cluster/link_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::ElementsAre;

v1::NodeLink Link(const std::string& from, const std::string& to, double round_trip = 1e-4, double rate = 1e8) {
  v1::NodeLink link;
  link.set_from(from);
  link.set_to(to);
  link.set_round_trip_seconds(round_trip);
  link.set_bytes_per_second(rate);
  return link;
}

std::vector<std::string> Texts(const LinkTable& table) {
  std::vector<std::string> texts;
  for (const v1::NodeLink& link : table.All()) {
    texts.push_back(absl::StrCat(link.from(), "-", link.to(), " ", link.bytes_per_second()));
  }
  return texts;
}

// The last measurement of a pair counts, whichever worker has sent. Links come in the order of names.
TEST(LinkTableTest, KeepsTheLastOfEachPair) {
  LinkTable table;
  table.Add(Link("b", "c", 1e-4, 1));
  table.Add(Link("a", "b", 1e-4, 2));
  table.Add(Link("b", "a", 1e-4, 3));
  table.Add(Link("c", "a", 1e-4, 0));
  EXPECT_THAT(Texts(table), ElementsAre("b-a 3", "b-c 1", "c-a 0"));
}

// The table ignores figures that no rank can have measured.
TEST(LinkTableTest, IgnoresImpossibleFigures) {
  LinkTable table;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {0.0, -1.0, nan, infinity}) table.Add(Link("a", "b", wrong));
  for (const double wrong : {-1.0, nan, infinity}) table.Add(Link("a", "b", 1e-4, wrong));
  table.Add(Link("a", "a"));
  EXPECT_THAT(Texts(table), ElementsAre());
}

// The table is bounded: the pair that was measured longest ago leaves first.
TEST(LinkTableTest, DropsTheOldestPair) {
  LinkTable table;
  table.Add(Link("a", "b"));
  table.Add(Link("a", "c"));
  for (size_t i = 2; i < LinkTable::kPairsMax; ++i) table.Add(Link("x", absl::StrCat("y", i)));
  table.Add(Link("b", "a"));
  EXPECT_EQ(table.All().size(), LinkTable::kPairsMax);
  table.Add(Link("p", "q"));
  EXPECT_EQ(table.All().size(), LinkTable::kPairsMax);
  EXPECT_EQ(table.All().front().from(), "b");
  for (const v1::NodeLink& link : table.All()) EXPECT_NE(link.to(), "c");
}

}  // namespace
}  // namespace hooke
