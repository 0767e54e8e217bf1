#ifndef HOOKE_WORKER_DATA_SAMPLES_H_
#define HOOKE_WORKER_DATA_SAMPLES_H_

// The trainer's view of a data set: numbered samples that can be written out as model inputs.

#include <cstdint>
#include <functional>

#include "absl/types/span.h"

namespace hooke {

struct Samples {
  uint64_t count = 0;
  uint64_t values = 0;  // Floats in one sample.
  // Writes the samples `indices` (each < count) and their labels, one after another. `pixels` has indices.size() *
  // values floats, `labels` has indices.size() numbers.
  std::function<void(absl::Span<const uint32_t> indices, absl::Span<float> pixels, absl::Span<int64_t> labels)> read;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_SAMPLES_H_
