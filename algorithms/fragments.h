#ifndef HOOKE_ALGORITHMS_FRAGMENTS_H_
#define HOOKE_ALGORITHMS_FRAGMENTS_H_

// The parts of a vector that a group exchanges at different times (exchange_plan.h). A fragment is a part of what each
// rank shares with each server, so that all ranks and all servers carry every fragment. Groups and servers compute the
// same parts from the same numbers. Pure.

#include <cstdint>
#include <vector>

#include "algorithms/sharding.h"

namespace hooke {

// `common` is the run of blocks that a rank and a server have in common. Returns those that belong to fragment
// `fragment.index` of `fragment.parts`; they form a run, too. With fewer blocks than fragments the later fragments are
// empty.
Range FragmentBlocks(const Range& common, Cut fragment);

// Whether `block`, one of `common`, is the first one of a fragment.
bool OpensFragment(const Range& common, uint64_t block, uint32_t fragments);

// The values that the rank with slice `slice` exchanges for a fragment with all `servers` servers. The ranges are
// ascending, not adjacent and not empty.
std::vector<Range> FragmentValues(const Partition& partition, Cut slice, uint64_t servers, Cut fragment);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_FRAGMENTS_H_
