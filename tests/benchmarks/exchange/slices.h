#ifndef HOOKE_TESTS_BENCHMARKS_EXCHANGE_SLICES_H_
#define HOOKE_TESTS_BENCHMARKS_EXCHANGE_SLICES_H_

// The values that a rank exchanges with each server. Rivals cut the vector as Hooke does.

#include "algorithms/sharding.h"
#include "tests/benchmarks/exchange/ways.h"

namespace hooke {

// Returns the range of the whole vector that a rank exchanges with a server. It is empty if the rank's slice and the
// server's shard have no block in common.
inline Range ValuesWith(const WayOptions& options, uint64_t count, size_t server) {
  const Partition partition(count);
  return partition.Values(Intersect(partition.SliceBlocks({options.rank, options.ranks}),
                                    partition.ShardBlocks({server, options.servers.size()})));
}

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_EXCHANGE_SLICES_H_
