#ifndef HOOKE_ALGORITHMS_FRAGMENTS_H_
#define HOOKE_ALGORITHMS_FRAGMENTS_H_

// The parts of a vector that a group exchanges at different times (exchange_plan.h). Each fragment has a part of the
// blocks that a rank exchanges with a server. So if there are enough blocks, every rank and every server takes part in
// every fragment. Groups and servers compute the same fragments from the same numbers. Pure.

#include <cstdint>
#include <vector>

#include "algorithms/sharding.h"

namespace hooke {

// Returns the blocks of `common` that belong to fragment `fragment.index` of `fragment.parts`. `common` is the run of
// blocks that a rank exchanges with a server. The result is a run, too. If `common` has fewer blocks than there are
// fragments, the later fragments are empty.
Range FragmentBlocks(const Range& common, Cut fragment);

// Whether `block`, a block of `common`, is the first block of a fragment. `common` is as in FragmentBlocks.
bool OpensFragment(const Range& common, uint64_t block, uint32_t fragments);

// Returns the values that the rank with slice `slice` exchanges for a fragment with all `servers` servers. The ranges
// are ascending, not adjacent and not empty.
std::vector<Range> FragmentValues(const Partition& partition, Cut slice, uint64_t servers, Cut fragment);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_FRAGMENTS_H_
