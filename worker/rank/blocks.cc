#include "worker/rank/blocks.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace hooke {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blocks are copied to the wire as they lie in memory");

void WriteBlock(absl::Span<const float> vector, const Range& range, v1::Block* block) {
  block->set_first(range.begin);
  block->mutable_values()->assign(reinterpret_cast<const char*>(vector.data() + range.begin),
                                  range.size() * sizeof(float));
}

absl::Status ReadBlock(const v1::Block& block, const Range& expected, std::vector<float>* values) {
  if (block.first() != expected.begin || block.values().size() != expected.size() * sizeof(float)) {
    return absl::InvalidArgumentError(absl::StrCat("a server sent a block at value ", block.first(), " of ",
                                                   block.values().size(), " bytes where values ", expected.begin,
                                                   " to ", expected.end, " were due"));
  }
  values->resize(expected.size());
  std::memcpy(values->data(), block.values().data(), block.values().size());
  return absl::OkStatus();
}

}  // namespace hooke
