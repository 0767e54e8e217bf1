#ifndef HOOKE_MPI_GROUP_TENSOR_LIST_H_
#define HOOKE_MPI_GROUP_TENSOR_LIST_H_

// The vectors that a rank contributes to a collective, handled as one vector without copying. A TensorList owns
// nothing: the memory outlives it. Copying one is cheap and shares the memory; slices are views.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace hooke {

// Half open: [begin, end), counted in values over the whole list.
struct ValueRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
};

class TensorList {
 public:
  TensorList() = default;
  // One vector.
  explicit TensorList(absl::Span<float> values);
  // Several, in order. Empty ones are allowed.
  explicit TensorList(std::vector<absl::Span<float>> parts);

  uint64_t size() const { return size_; }  // Values.
  bool empty() const { return size_ == 0; }
  // The pieces in order, none of them empty.
  const std::vector<absl::Span<float>>& pieces() const { return pieces_; }

  // A view of the values in `range`, which lies within [0, size()).
  TensorList Slice(ValueRange range) const;

 private:
  std::vector<absl::Span<float>> pieces_;
  uint64_t size_ = 0;
};

// Copies all values of a list, in order, to or from contiguous memory of list.size() floats.
void Gather(const TensorList& from, absl::Span<float> to);
void Scatter(absl::Span<const float> from, const TensorList& to);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TENSOR_LIST_H_
