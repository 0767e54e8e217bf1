#ifndef HOOKE_SERVER_CLUSTER_LINK_TABLE_H_
#define HOOKE_SERVER_CLUSTER_LINK_TABLE_H_

// The network between workers, as ranks have measured it: the last measurement of each pair of workers. Kept in memory
// only. Not thread-safe.

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/coordinator.pb.h"

namespace hooke {

class LinkTable {
 public:
  static constexpr size_t kPairsMax = 4096;

  // Replaces what is known of this pair of workers, in whichever direction it was measured. If there are kPairsMax
  // pairs, the pair that was measured longest ago is dropped. A link from a worker to itself, or with figures out of
  // range (proto/worker.proto), is ignored.
  void Add(const v1::NodeLink& link);

  // Returns all links, in the order of the workers' names: that of `from`, then that of `to`.
  std::vector<v1::NodeLink> All() const;

 private:
  using Pair = std::pair<std::string, std::string>;  // Two workers' names, the lesser one first.

  std::list<v1::NodeLink> links_;  // The oldest measurement first.
  std::map<Pair, std::list<v1::NodeLink>::iterator> link_of_pair_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_LINK_TABLE_H_
