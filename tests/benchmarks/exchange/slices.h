#ifndef HOOKE_TESTS_BENCHMARKS_EXCHANGE_SLICES_H_
#define HOOKE_TESTS_BENCHMARKS_EXCHANGE_SLICES_H_

// Which values a rank exchanges with which server: Hooke's own cut, for the rivals, too.

#include "algorithms/sharding.h"
#include "tests/benchmarks/exchange/ways.h"

namespace hooke {

// Values of the whole vector; empty where the rank's slice and the server's shard do not meet.
inline Range ValuesWith(const WayOptions& options, uint64_t count, size_t server) {
  const Partition partition(count);
  return partition.Values(Intersect(partition.SliceBlocks({options.rank, options.ranks}),
                                    partition.ShardBlocks({server, options.servers.size()})));
}

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_EXCHANGE_SLICES_H_
