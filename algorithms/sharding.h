#ifndef HOOKE_ALGORITHMS_SHARDING_H_
#define HOOKE_ALGORITHMS_SHARDING_H_

// How a center is cut: into blocks, blocks into the servers' shards, and blocks into the slices that the ranks of a
// group exchange.
//
// The center is one vector of `values` floats, cut into blocks of `block_values` (the last may be shorter). Shards and
// slices are runs of whole blocks, so a block is on one server, and one rank of each group exchanges it. Servers and
// ranks compute the same cut from the same numbers; no message carries it. Pure and thread-safe.

#include <cstdint>
#include <vector>

namespace hooke {

// Half open: [begin, end).
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  friend bool operator==(const Range& a, const Range& b) { return a.begin == b.begin && a.end == b.end; }
};

// 64 KiB of float32. Small enough for receiving, applying and answering to overlap. Large enough that a block's cost is
// mostly that of its bytes.
inline constexpr uint64_t kBlockValues = 16384;

// Returns the overlap of two ranges, or an empty range at `a.begin` if they do not meet.
Range Intersect(const Range& a, const Range& b);

// Part `index` of [0, count), cut into `parts` runs. Sizes differ by at most one, larger ones first. `parts` >= 1 and
// `index` < `parts`; with more parts than items the last runs are empty.
struct Cut {
  uint64_t index = 0;
  uint64_t parts = 1;
};
Range EvenPart(uint64_t count, Cut cut);

class Partition {
 public:
  // `block_values` >= 1.
  explicit Partition(uint64_t values, uint64_t block_values = kBlockValues)
      : values_(values), block_values_(block_values) {}

  uint64_t values() const { return values_; }
  uint64_t block_values() const { return block_values_; }
  uint64_t blocks() const { return (values_ + block_values_ - 1) / block_values_; }

  // The values of block `block` < blocks().
  Range BlockRange(uint64_t block) const;
  // The block that holds value `index` < values().
  uint64_t BlockOf(uint64_t index) const { return index / block_values_; }

  // The blocks that shard `cut.index` of `cut.parts` holds, and the values they cover.
  Range ShardBlocks(Cut cut) const { return EvenPart(blocks(), cut); }
  Range ShardValues(Cut cut) const { return Values(ShardBlocks(cut)); }

  // The blocks that rank `cut.index` of a group of `cut.parts` ranks exchanges. They may lie on several shards.
  Range SliceBlocks(Cut cut) const { return EvenPart(blocks(), cut); }

  // The values that a run of blocks covers.
  Range Values(const Range& blocks) const;

 private:
  uint64_t values_;
  uint64_t block_values_;
};

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_SHARDING_H_
