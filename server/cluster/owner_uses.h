#ifndef HOOKE_SERVER_CLUSTER_OWNER_USES_H_
#define HOOKE_SERVER_CLUSTER_OWNER_USES_H_

// How much of the cluster the owner of each job has used, and uses now.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "server/records/records.h"

namespace hooke {

class OwnerUses {
 public:
  // Use counts half after `half_life`.
  explicit OwnerUses(absl::Duration half_life) : half_life_(half_life) {}

  // Takes the uses that an earlier process stored. Call it once, before the others.
  void Load(const std::vector<OwnerUse>& stored, Instant now);
  // Adds what owners have used since the last call. `slots` has the slots that each uses from now on; 0 if it is not in
  // there.
  void Charge(const std::map<std::string, uint64_t>& slots, Instant now);
  // Returns the uses to store, by owner: none, if the last ones were taken less than a minute ago. An owner who has
  // used next to nothing is returned with 0 and forgotten.
  std::map<std::string, OwnerUse> TakeDue(Instant now);

  // Returns the slots that the owner uses now.
  uint64_t SlotsOf(const std::string& owner) const;
  // Returns for each owner the slots in use now plus those in use on average over the past.
  std::map<std::string, double> Weights() const;

 private:
  struct Use {
    double slot_seconds = 0;  // Use up to `charged_at_`. Use in the past counts less the older it is.
    uint64_t slots = 0;       // The slots in use since `charged_at_`.
  };

  absl::Duration half_life_;
  std::map<std::string, Use> uses_;                   // By owner.
  absl::Duration charged_at_ = absl::ZeroDuration();  // Steady time of the last Charge.
  absl::Duration stored_at_ = absl::ZeroDuration();   // Steady time of the last TakeDue that returned any.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_OWNER_USES_H_
