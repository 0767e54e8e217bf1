#ifndef HOOKE_MPI_GROUP_TENSOR_LIST_H_
#define HOOKE_MPI_GROUP_TENSOR_LIST_H_

// The vectors that a rank contributes to a collective, treated as one vector without copying. A TensorList owns no
// memory; the caller keeps the vectors alive. Copies and slices are cheap views of the same memory.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"

namespace hooke {

// Half open: [begin, end), counted in values over the whole list.
struct ValueRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
};

class TensorList {
 public:
  using Pieces = absl::InlinedVector<absl::Span<char>, 4>;

  TensorList() = default;
  // A list of one vector.
  template <typename T>
  explicit TensorList(absl::Span<T> values) : type_(DataTypeOf<T>()) {
    Add(values);
  }
  // A list of several vectors of one type, in order. Empty ones are allowed.
  template <typename T>
  TensorList(std::initializer_list<absl::Span<T>> parts) : type_(DataTypeOf<T>()) {
    for (absl::Span<T> part : parts) Add(part);
  }
  template <typename T>
  explicit TensorList(const std::vector<absl::Span<T>>& parts) : type_(DataTypeOf<T>()) {
    for (absl::Span<T> part : parts) Add(part);
  }
  // A list of one vector of values of `type`, given as bytes. The bytes of an incomplete last value are left out.
  TensorList(DataType type, absl::Span<char> bytes) : type_(type) { AddBytes(bytes); }
  // A list of several vectors of `type`, each given as bytes, in order.
  TensorList(DataType type, const std::vector<absl::Span<char>>& parts) : type_(type) {
    for (absl::Span<char> part : parts) AddBytes(part);
  }

  DataType type() const { return type_; }
  uint64_t size() const { return size_; }  // Number of values.
  uint64_t bytes() const { return size_ * SizeOf(type_); }
  bool empty() const { return size_ == 0; }

  // The vectors in order, as bytes. Empty vectors are left out; each piece is a whole number of values.
  const Pieces& pieces() const { return pieces_; }

  // A view of the values in `range`, which lies within [0, size()).
  TensorList Slice(ValueRange range) const;

 private:
  template <typename T>
  void Add(absl::Span<T> values) {
    AddBytes({reinterpret_cast<char*>(values.data()), values.size() * sizeof(T)});
  }
  void AddBytes(absl::Span<char> bytes);

  DataType type_ = DataType::kFloat32;
  Pieces pieces_;
  uint64_t size_ = 0;
};

// Copies all values of a list, in order, to or from contiguous memory of list.bytes() bytes.
void Gather(const TensorList& from, absl::Span<char> to);
void Scatter(absl::Span<const char> from, const TensorList& to);

// Typed values seen as bytes, as Gather, Scatter and Transport take them.
template <typename T>
absl::Span<const char> BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template <typename T>
absl::Span<char> MutableBytesOf(absl::Span<T> values) {
  return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TENSOR_LIST_H_
