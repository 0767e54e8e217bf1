#include "algorithms/fragments.h"

namespace hooke {

Range FragmentBlocks(const Range& common, Cut fragment) {
  const Range part = EvenPart(common.size(), fragment);
  return {common.begin + part.begin, common.begin + part.end};
}

bool OpensFragment(const Range& common, uint64_t block, uint32_t fragments) {
  for (uint32_t i = 0; i < fragments; ++i) {
    const Range blocks = FragmentBlocks(common, {i, fragments});
    if (!blocks.empty() && blocks.begin == block) return true;
  }
  return false;
}

std::vector<Range> FragmentValues(const Partition& partition, Cut slice, uint64_t servers, Cut fragment) {
  const Range blocks = partition.SliceBlocks(slice);
  std::vector<Range> all;
  for (uint64_t server = 0; server < servers; ++server) {
    const Range common = Intersect(blocks, partition.ShardBlocks({server, servers}));
    if (common.empty()) continue;
    const Range part = FragmentBlocks(common, fragment);
    if (part.empty()) continue;
    const Range values = partition.Values(part);
    if (!all.empty() && all.back().end == values.begin) {
      all.back().end = values.end;
    } else {
      all.push_back(values);
    }
  }
  return all;
}

}  // namespace hooke
