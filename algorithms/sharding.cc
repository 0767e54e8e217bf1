#include "algorithms/sharding.h"

#include <algorithm>

namespace hooke {

Range Intersect(const Range& a, const Range& b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : Range{a.begin, a.begin};
}

Range EvenPart(uint64_t count, Cut cut) {
  const uint64_t length = count / cut.parts;
  const uint64_t longer = count % cut.parts;  // The first `longer` parts have one item more.
  const uint64_t begin = cut.index * length + std::min(cut.index, longer);
  return {begin, begin + length + (cut.index < longer ? 1 : 0)};
}

Range Partition::BlockRange(uint64_t block) const { return Values({block, block + 1}); }

Range Partition::Values(const Range& blocks) const {
  return {std::min(blocks.begin * block_values_, values_), std::min(blocks.end * block_values_, values_)};
}

}  // namespace hooke
