#include "mpi_group/groups/in_process_group.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/transport/in_process_transport.h"

namespace hooke {
namespace {

// Makes the transports of clones: the k-th calls of all ranks get the transports of one network.
class Clones {
 public:
  explicit Clones(int n) : calls_(n) {}

  std::unique_ptr<Transport> New(int rank) {
    absl::MutexLock lock(&mutex_);
    const size_t call = calls_[rank]++;
    if (call == networks_.size()) networks_.push_back(MakeInProcessTransports(static_cast<int>(calls_.size())));
    return std::move(networks_[call][rank]);
  }

 private:
  absl::Mutex mutex_;
  std::vector<size_t> calls_ ABSL_GUARDED_BY(mutex_);  // Number of calls of each rank.
  // For each call, the transports that no rank has taken yet.
  std::vector<std::vector<std::unique_ptr<Transport>>> networks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<std::unique_ptr<Group>> MakeInProcessGroups(int n, const GroupOptions& options) {
  const auto clones = std::make_shared<Clones>(n);
  std::vector<std::unique_ptr<Group>> groups;
  groups.reserve(n);
  for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(n)) {
    const int rank = transport->rank();
    groups.push_back(
        MakeTransportGroup(std::move(transport), options, [clones, rank](absl::Time) { return clones->New(rank); }));
  }
  return groups;
}

}  // namespace hooke
