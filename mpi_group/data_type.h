#ifndef HOOKE_MPI_GROUP_DATA_TYPE_H_
#define HOOKE_MPI_GROUP_DATA_TYPE_H_

// The types of values that collectives take, and the reductions. Values are in the machine's own representation: the
// ranks of a group share one byte order and one float format.

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hooke {

// Append only: ranks send each other these numbers to compare their calls.
enum class DataType : uint8_t { kFloat32, kFloat64, kBFloat16, kFloat16, kInt32, kInt64 };

// A 16-bit value as it lies in memory. Arithmetic on it is done in float32 (reduce/reduce.h).
struct BFloat16 {  // The upper half of an IEEE 754 binary32.
  uint16_t bits = 0;
};
struct Float16 {  // IEEE 754 binary16.
  uint16_t bits = 0;
};

inline uint64_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kBFloat16:
    case DataType::kFloat16:
      return 2;
    case DataType::kFloat64:
    case DataType::kInt64:
      return 8;
    case DataType::kFloat32:
    case DataType::kInt32:
      break;
  }
  return 4;
}

// The name of a type in messages, for instance "float32".
inline absl::string_view NameOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat64:
      return "float64";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kFloat16:
      return "float16";
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
  }
  return "unknown type";
}

// kSum of integers wraps around. kMean divides the sum once, by the number of ranks. Float sums are multiplied with the
// rounded reciprocal of that number. Integer sums are divided and rounded towards zero. kMin and kMax are NaN where any
// rank's value is NaN.
enum class ReduceOp : uint8_t { kSum, kMean, kMin, kMax };

// The name of a reduction in messages, for instance "sum".
inline absl::string_view NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMean:
      return "mean";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
  }
  return "unknown reduction";
}

// DataTypeOf<float>() is kFloat32. Other types do not compile.
template <typename T>
constexpr DataType DataTypeOf();
template <>
constexpr DataType DataTypeOf<float>() {
  return DataType::kFloat32;
}
template <>
constexpr DataType DataTypeOf<double>() {
  return DataType::kFloat64;
}
template <>
constexpr DataType DataTypeOf<BFloat16>() {
  return DataType::kBFloat16;
}
template <>
constexpr DataType DataTypeOf<Float16>() {
  return DataType::kFloat16;
}
template <>
constexpr DataType DataTypeOf<int32_t>() {
  return DataType::kInt32;
}
template <>
constexpr DataType DataTypeOf<int64_t>() {
  return DataType::kInt64;
}

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_DATA_TYPE_H_
