#include "server/cluster/owner_uses.h"

#include <iterator>

#include "server/scheduling/fair_share.h"

namespace hooke {
namespace {

constexpr absl::Duration kStoreEvery = absl::Minutes(1);
// An owner who used less than this on average, and uses nothing now, is forgotten.
constexpr double kLeastMeanSlots = 1e-3;

}  // namespace

void OwnerUses::Load(const std::vector<OwnerUse>& stored, Instant now) {
  charged_at_ = stored_at_ = now.steady;
  for (const OwnerUse& use : stored) {
    const absl::Duration passed = now.wall - absl::FromUnixMillis(use.unix_ms);
    uses_[use.owner].slot_seconds = SlotSecondsAfter(use.slot_seconds, 0, passed, half_life_);
  }
}

void OwnerUses::Charge(const std::map<std::string, uint64_t>& slots, Instant now) {
  const absl::Duration passed = now.steady - charged_at_;
  charged_at_ = now.steady;
  for (auto& [owner, use] : uses_) {
    use.slot_seconds = SlotSecondsAfter(use.slot_seconds, use.slots, passed, half_life_);
    use.slots = 0;
  }
  for (const auto& [owner, used] : slots) uses_[owner].slots = used;
}

std::map<std::string, OwnerUse> OwnerUses::TakeDue(Instant now) {
  std::map<std::string, OwnerUse> due;
  if (now.steady - stored_at_ < kStoreEvery) return due;
  stored_at_ = now.steady;
  for (auto it = uses_.begin(); it != uses_.end();) {
    const bool idle = it->second.slots == 0 && MeanSlots(it->second.slot_seconds, half_life_) < kLeastMeanSlots;
    due[it->first] = {it->first, idle ? 0 : it->second.slot_seconds, absl::ToUnixMillis(now.wall)};
    it = idle ? uses_.erase(it) : std::next(it);
  }
  return due;
}

uint64_t OwnerUses::SlotsOf(const std::string& owner) const {
  const auto use = uses_.find(owner);
  return use == uses_.end() ? 0 : use->second.slots;
}

std::map<std::string, double> OwnerUses::Weights() const {
  std::map<std::string, double> weights;
  for (const auto& [owner, use] : uses_) {
    weights[owner] = static_cast<double>(use.slots) + MeanSlots(use.slot_seconds, half_life_);
  }
  return weights;
}

}  // namespace hooke
