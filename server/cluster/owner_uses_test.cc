#include "server/cluster/owner_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::DoubleNear;
using testing::IsEmpty;

constexpr absl::Duration kHalfLife = absl::Hours(1);

class OwnerUsesTest : public testing::Test {
 protected:
  Instant now_{absl::FromUnixSeconds(1000000000), absl::Seconds(1000)};
  OwnerUses uses_{kHalfLife};
};

// Whoever has used slots weighs more than one who has not, and less as time passes.
TEST_F(OwnerUsesTest, UseCountsLessAsItGetsOlder) {
  uses_.Load({}, now_);
  uses_.Charge({{"ann", 4}}, now_);
  EXPECT_EQ(uses_.SlotsOf("ann"), 4);
  EXPECT_EQ(uses_.SlotsOf("bob"), 0);
  now_ += kHalfLife;
  uses_.Charge({{"bob", 1}}, now_);
  EXPECT_EQ(uses_.SlotsOf("ann"), 0);
  const double after = uses_.Weights()["ann"];
  EXPECT_GT(after, 0);
  now_ += kHalfLife;
  uses_.Charge({}, now_);
  EXPECT_THAT(uses_.Weights()["ann"], DoubleNear(after / 2, 1e-9));
}

TEST_F(OwnerUsesTest, IsStoredOnceAMinute) {
  uses_.Load({}, now_);
  uses_.Charge({{"ann", 4}}, now_);
  EXPECT_THAT(uses_.TakeDue(now_), IsEmpty());
  now_ += absl::Minutes(1);
  uses_.Charge({{"ann", 4}}, now_);
  const std::map<std::string, OwnerUse> due = uses_.TakeDue(now_);
  ASSERT_EQ(due.size(), 1);
  EXPECT_GT(due.at("ann").slot_seconds, 200);
  EXPECT_EQ(due.at("ann").unix_ms, absl::ToUnixMillis(now_.wall));
  EXPECT_THAT(uses_.TakeDue(now_), IsEmpty());
}

// A coordinator that starts again goes on with the stored uses, less what they have lost meanwhile.
TEST_F(OwnerUsesTest, GoesOnWithStoredUses) {
  OwnerUse stored;
  stored.owner = "ann";
  stored.slot_seconds = 1000;
  stored.unix_ms = absl::ToUnixMillis(now_.wall - kHalfLife);
  uses_.Load({stored}, now_);
  now_ += absl::Minutes(1);
  uses_.Charge({}, now_);
  EXPECT_THAT(uses_.TakeDue(now_).at("ann").slot_seconds, DoubleNear(494.3, 0.1));
}

// An owner who has used next to nothing is stored as 0 once, and then forgotten.
TEST_F(OwnerUsesTest, ForgetsIdleOwners) {
  uses_.Load({}, now_);
  uses_.Charge({{"ann", 1}}, now_);
  now_ += absl::Seconds(1);
  uses_.Charge({}, now_);
  now_ += 30 * kHalfLife;
  uses_.Charge({}, now_);
  EXPECT_EQ(uses_.TakeDue(now_).at("ann").slot_seconds, 0);
  EXPECT_THAT(uses_.Weights(), IsEmpty());
}

}  // namespace
}  // namespace hooke
