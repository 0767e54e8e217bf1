#include "worker/cores/node_cores.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

std::unique_ptr<HeldCores> Unbound(std::string why) {
  CoresChoice choice;
  choice.why_not = std::move(why);
  return std::make_unique<HeldCores>(std::move(choice), nullptr);
}

}  // namespace

std::unique_ptr<HeldCores> NodeCores::Take(uint32_t ranks) const {
  // Each group has locks of its own. So the cores of this worker's other groups are taken, too.
  absl::StatusOr<std::unique_ptr<ByteLocks>> locks = ByteLocks::Open(options_.file);
  if (!locks.ok()) {
    return Unbound(absl::StrCat("the ranks of other workers are not known, because ", locks.status().message()));
  }
  if (const absl::Status begun = (*locks)->BeginChoice(); !begun.ok()) return Unbound(std::string(begun.message()));
  std::set<int> taken;
  for (const Core& core : options_.cores) {
    for (const int cpu : core.cpus) {
      if ((*locks)->IsTaken(cpu)) taken.insert(cpu);
    }
  }
  CoresChoice choice = ChooseCores(options_.cores, taken, {options_.slots, ranks});
  for (const std::vector<int>& cpus : choice.cpus_of_rank) {
    for (const int cpu : cpus) (*locks)->Take(cpu);
  }
  (*locks)->EndChoice();
  return std::make_unique<HeldCores>(std::move(choice), *std::move(locks));
}

}  // namespace hooke
