#ifndef HOOKE_WORKER_DATA_SAMPLES_H_
#define HOOKE_WORKER_DATA_SAMPLES_H_

// Where batches come from, as the trainer sees it: a numbered set of samples that can be written out as model inputs.

#include <cstdint>
#include <functional>

#include "absl/types/span.h"

namespace hooke {

struct Samples {
  uint64_t count = 0;
  uint64_t values = 0;  // Floats of one sample.
  // Writes the samples `indices` (each < count), one after another: indices.size() * values floats, and their labels.
  std::function<void(absl::Span<const uint32_t> indices, absl::Span<float> pixels, absl::Span<int64_t> labels)> read;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_SAMPLES_H_
