#include "mpi_group/scale/fit_link.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

std::vector<MeasuredAllReduce> TimesOn(const LinkCost& link) {
  std::vector<MeasuredAllReduce> measured;
  for (int nodes : {2, 4, 8}) {
    for (uint64_t bytes = 4096; bytes <= 16 << 20; bytes *= 4) measured.push_back({nodes, bytes, 1});
  }
  for (MeasuredAllReduce& one : measured) one.seconds = ModelSeconds(one, link);
  return measured;
}

// Times that the model computed give back the costs that it computed them from.
TEST(FitLinkTest, FindsTheCosts) {
  for (const LinkCost& link : {LinkCost{50e-6, 20e-6, 8e-9}, LinkCost{5e-6, 2e-6, 0.1e-9}}) {
    const LinkCost found = FitLink(TimesOn(link));
    EXPECT_NEAR(found.latency / link.latency, 1, 0.05);
    EXPECT_NEAR(found.overhead / link.overhead, 1, 0.05);
    EXPECT_NEAR(found.per_byte / link.per_byte, 1, 0.01);
  }
}

// If one of the times is doubled, the fitted cost per byte changes by at most 20 %.
TEST(FitLinkTest, OneBadTimeDoesLittleHarm) {
  constexpr LinkCost kLink = {50e-6, 20e-6, 8e-9};
  std::vector<MeasuredAllReduce> measured = TimesOn(kLink);
  measured.back().seconds *= 2;
  EXPECT_NEAR(FitLink(measured).per_byte / kLink.per_byte, 1, 0.2);
}

}  // namespace
}  // namespace hooke
