#ifndef HOOKE_MPI_GROUP_REDUCE_REDUCE_KERNELS_H_
#define HOOKE_MPI_GROUP_REDUCE_REDUCE_KERNELS_H_

// The kernels of a ReduceVariant, written with compiler vectors (vector_size) of 64, 32 or 16 bytes. reduce_avx512.cc,
// reduce_avx2.cc and reduce_baseline.cc include this file, each compiled with its own flags, which decide the vectors'
// size. Everything here has internal linkage; reduce_variant.h says why.
//
// Values are summed in the order of the sources, a vector at a time. The result is bitwise that of the plain loop in
// reduce_reference.cc.

#include <cstdint>

#include "mpi_group/reduce/reduce_variant.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace hooke {
// Each including file gets its own kernels, because they depend on the flags with which it is compiled.
namespace {  // NOLINT(google-build-namespaces)

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename T, int n>
struct Lanes {
  typedef T Vector __attribute__((vector_size(n * sizeof(T))));
};
template <typename T, int n>
using Vector = typename Lanes<T, n>::Vector;

// The copy allows memory that is aligned only for values, not for vectors.
template <typename V>
V LoadVector(const char* from) {
  V vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <typename V>
void StoreVector(V vector, char* to) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

// The element types of a kernel: of its sources (Stored), in arithmetic (Value), and of its destinations (Result).
template <typename T>
struct Plain {
  using Stored = T;
  using Value = T;
  using Result = T;
  template <int n>
  static Vector<T, n> Load(const char* from) {
    return LoadVector<Vector<T, n>>(from);
  }
  template <int n>
  static void Store(Vector<T, n> values, char* to) {
    StoreVector(values, to);
  }
};

struct Bfloat {
  using Stored = uint16_t;
  using Value = float;
  using Result = uint16_t;
  template <int n>
  static Vector<float, n> Load(const char* from) {
    return (Vector<float, n>)(__builtin_convertvector(LoadVector<Vector<uint16_t, n>>(from), Vector<uint32_t, n>)
                              << 16);
  }
  template <int n>
  static void Store(Vector<float, n> values, char* to) {
    const auto bits = (Vector<uint32_t, n>)values;
    // Rounds to nearest, ties to even: adds just under half a unit of the last kept bit, and one more if that bit is
    // odd.
    const Vector<uint32_t, n> rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const Vector<uint32_t, n> nan = (bits >> 16) | 0x40;
    StoreVector(__builtin_convertvector(values == values ? rounded : nan, Vector<uint16_t, n>), to);
  }
};

// Bit layout of IEEE binary32 against binary16: 13 more fraction bits, and an exponent bias of 127 instead of 15.
constexpr int kFractionBitsLost = 13;
constexpr uint32_t kExponentOffset = uint32_t{127 - 15} << 23;
constexpr uint32_t kFloatInfinity = 0x7F800000;

template <int n>
Vector<float, n> FromHalves(Vector<uint16_t, n> halves) {
  using Bits = Vector<uint32_t, n>;
  const Bits wide = __builtin_convertvector(halves, Bits);
  const Bits magnitude = (wide & 0x7FFF) << kFractionBitsLost;
  const Bits normal = magnitude + kExponentOffset;
  // A denormal binary16 is its fraction times 2^-24. Put behind a leading one, the fraction makes 2^-14 plus that
  // value; subtract 2^-14 again.
  const Bits one = Bits{} + (kExponentOffset + (uint32_t{1} << 23));
  const auto denormal = (Bits)((Vector<float, n>)(magnitude + one) - (Vector<float, n>)one);
  const Bits special = magnitude | kFloatInfinity;
  const Bits finite = magnitude < (uint32_t{1} << 23) ? denormal : normal;
  const Bits bits = magnitude < (uint32_t{31} << 23) ? finite : special;
  return (Vector<float, n>)(bits | (wide & 0x8000) << 16);
}

template <int n>
Vector<uint16_t, n> ToHalves(Vector<float, n> values) {
  using Bits = Vector<uint32_t, n>;
  const auto bits = (Bits)values;
  const Bits magnitude = bits & 0x7FFFFFFF;
  const Bits odd = (magnitude >> kFractionBitsLost) & 1;
  const Bits normal = (magnitude - kExponentOffset + 0xFFF + odd) >> kFractionBitsLost;
  // The last bit of 0.5 in binary32 is worth 2^-24, the smallest denormal of binary16. So adding 0.5 rounds a value to
  // a multiple of it.
  const Bits half = Bits{} + 0x3F000000;
  const Bits denormal = (Bits)((Vector<float, n>)magnitude + (Vector<float, n>)half) - half;
  const Bits special = magnitude > kFloatInfinity ? Bits{} + 0x7E00 : Bits{} + 0x7C00;
  const Bits finite = magnitude < kExponentOffset + (uint32_t{1} << 23) ? denormal : normal;
  const Bits result = magnitude < uint32_t{127 + 16} << 23 ? finite : special;
  return __builtin_convertvector(result | (bits & 0x80000000) >> 16, Vector<uint16_t, n>);
}

// F16C has instructions for these conversions.
#if defined(__F16C__)
template <>
Vector<float, 8> FromHalves<8>(Vector<uint16_t, 8> halves) {
  return (Vector<float, 8>)_mm256_cvtph_ps((__m128i)halves);
}
template <>
Vector<uint16_t, 8> ToHalves<8>(Vector<float, 8> values) {
  return (Vector<uint16_t, 8>)_mm256_cvtps_ph((__m256)values, _MM_FROUND_TO_NEAREST_INT);
}
#endif
#if defined(__AVX512F__)
// Without a mask gcc 12's own header warns of an uninitialized value (gcc bug 105593); a full mask costs nothing.
template <>
Vector<float, 16> FromHalves<16>(Vector<uint16_t, 16> halves) {
  return (Vector<float, 16>)_mm512_maskz_cvtph_ps(0xFFFF, (__m256i)halves);
}
template <>
Vector<uint16_t, 16> ToHalves<16>(Vector<float, 16> values) {
  return (Vector<uint16_t, 16>)_mm512_maskz_cvtps_ph(0xFFFF, (__m512)values, _MM_FROUND_TO_NEAREST_INT);
}
#endif

struct Half {
  using Stored = uint16_t;
  using Value = float;
  using Result = uint16_t;
  template <int n>
  static Vector<float, n> Load(const char* from) {
    return FromHalves<n>(LoadVector<Vector<uint16_t, n>>(from));
  }
  template <int n>
  static void Store(Vector<float, n> values, char* to) {
    StoreVector(ToHalves<n>(values), to);
  }
};

// The element types of a kernel that reduces 16-bit sources to float32 results.
template <typename Type>
struct Wide {
  using Stored = typename Type::Stored;
  using Value = float;
  using Result = float;
  template <int n>
  static Vector<float, n> Load(const char* from) {
    return Type::template Load<n>(from);
  }
  template <int n>
  static void Store(Vector<float, n> values, char* to) {
    StoreVector(values, to);
  }
};

// Integers are summed as unsigned, because signed overflow is undefined and unsigned sums wrap around.
template <typename T>
struct Sum {
  explicit Sum(int) {}
  template <int n>
  Vector<T, n> Combine(Vector<T, n> a, Vector<T, n> b) const {
    return a + b;
  }
  template <int n>
  Vector<T, n> Finish(Vector<T, n> sum) const {
    return sum;
  }
};

template <typename T>
struct Mean : Sum<T> {
  explicit Mean(int mean_of) : Sum<T>(mean_of), factor(1 / static_cast<T>(mean_of)) {}
  template <int n>
  Vector<T, n> Finish(Vector<T, n> sum) const {
    return sum * factor;
  }
  T factor;
};

// Divides one value at a time: CPUs have no vector division of integers.
template <typename T, typename Signed>
struct IntegerMean : Sum<T> {
  explicit IntegerMean(int mean_of) : Sum<T>(mean_of), divisor(mean_of) {}
  template <int n>
  Vector<T, n> Finish(Vector<T, n> sum) const {
    for (int i = 0; i < n; ++i) sum[i] = static_cast<T>(static_cast<Signed>(sum[i]) / divisor);
    return sum;
  }
  Signed divisor;
};

template <typename T>
struct Min : Sum<T> {
  using Sum<T>::Sum;
  template <int n>
  Vector<T, n> Combine(Vector<T, n> a, Vector<T, n> b) const {
    const Vector<T, n> less = a < b ? a : b;  // b if one is NaN.
    return a == a ? less : a;
  }
};

template <typename T>
struct Max : Sum<T> {
  using Sum<T>::Sum;
  template <int n>
  Vector<T, n> Combine(Vector<T, n> a, Vector<T, n> b) const {
    const Vector<T, n> greater = a > b ? a : b;  // b if one is NaN.
    return a == a ? greater : a;
  }
};

struct Places {
  const char* const* sources;
  uint64_t source_count;
  char* const* destinations;
  uint64_t destination_count;
};

template <typename Type>
inline constexpr uint64_t kStoredBytes = sizeof(typename Type::Stored);
template <typename Type>
inline constexpr uint64_t kResultBytes = sizeof(typename Type::Result);

// Reduces `unroll` vectors of n values each, from byte `offset` of the sources on. It loads everything before it stores
// anything, as a destination may be a source.
template <typename Type, typename Op, int n, int unroll>
__attribute__((always_inline)) inline void ReduceVectors(const Op& op, const Places& at, uint64_t offset) {
  constexpr uint64_t kBytes = n * sizeof(typename Type::Stored);
  constexpr uint64_t kGrowth = kResultBytes<Type> / kStoredBytes<Type>;
  Vector<typename Type::Value, n> result[unroll];
  for (int u = 0; u < unroll; ++u) result[u] = Type::template Load<n>(at.sources[0] + offset + u * kBytes);
  for (uint64_t s = 1; s < at.source_count; ++s) {
    const char* source = at.sources[s] + offset;
    for (int u = 0; u < unroll; ++u) {
      result[u] = op.template Combine<n>(result[u], Type::template Load<n>(source + u * kBytes));
    }
  }
  for (int u = 0; u < unroll; ++u) result[u] = op.template Finish<n>(result[u]);
  for (uint64_t d = 0; d < at.destination_count; ++d) {
    char* destination = at.destinations[d] + offset * kGrowth;
    for (int u = 0; u < unroll; ++u) Type::template Store<n>(result[u], destination + u * kBytes * kGrowth);
  }
}

// Reduces the last values, fewer than 2n: a vector of n, then of n / 2, and so on.
template <typename Type, typename Op, int n>
void ReduceTail(const Op& op, const Places& at, uint64_t offset, uint64_t values) {
  if (values >= n) {
    ReduceVectors<Type, Op, n, 1>(op, at, offset);
    offset += n * sizeof(typename Type::Stored);
    values -= n;
  }
  if constexpr (n > 1) {
    if (values > 0) ReduceTail<Type, Op, n / 2>(op, at, offset, values);
  }
}

template <typename Type, typename Op>
__attribute__((always_inline)) inline void ReducePlaces(const Op& op, const Places& at, uint64_t values) {
  constexpr int kLanes = kVectorBytes / sizeof(typename Type::Value);
  constexpr int kUnroll = 4;
  constexpr uint64_t kBytes = kLanes * sizeof(typename Type::Stored);
  uint64_t offset = 0;
  constexpr uint64_t kBlock = uint64_t{kUnroll} * kLanes;
  for (; values >= kBlock; values -= kBlock, offset += kUnroll * kBytes) {
    ReduceVectors<Type, Op, kLanes, kUnroll>(op, at, offset);
  }
  for (; values >= kLanes; values -= kLanes, offset += kBytes) ReduceVectors<Type, Op, kLanes, 1>(op, at, offset);
  if (values > 0) ReduceTail<Type, Op, kLanes / 2>(op, at, offset, values);
}

// The most frequent counts are spelled out as constants, so that the pointers stay in registers.
template <typename Type, typename Op>
void ReduceKernel(const char* const* sources, uint64_t source_count, char* const* destinations,
                  uint64_t destination_count, uint64_t values, int mean_of) {
  const Op op(mean_of);
  if (source_count == 2 && destination_count <= 2) {
    const char* const two_sources[] = {sources[0], sources[1]};
    char* const two_destinations[] = {destinations[0], destinations[destination_count - 1]};
    if (destination_count == 2) return ReducePlaces<Type, Op>(op, {two_sources, 2, two_destinations, 2}, values);
    return ReducePlaces<Type, Op>(op, {two_sources, 2, two_destinations, 1}, values);
  }
  ReducePlaces<Type, Op>(op, {sources, source_count, destinations, destination_count}, values);
}

// Converts values from one type to the other: n at a time, and the last ones n / 2 at a time, and so on.
template <typename From, typename To, int n>
void ConvertVectors(const char* from, char* to, uint64_t values) {
  for (; values >= n; values -= n) {
    To::template Store<n>(From::template Load<n>(from), to);
    from += n * sizeof(typename From::Stored);
    to += n * sizeof(typename To::Stored);
  }
  if constexpr (n > 1) ConvertVectors<From, To, n / 2>(from, to, values);
}

template <typename From, typename To>
void ConvertKernel(const char* from, char* to, uint64_t values) {
  ConvertVectors<From, To, kVectorBytes / sizeof(float)>(from, to, values);
}

template <typename Type>
constexpr void FillFloats(ReduceVariant::ReduceKernel (&kernels)[ReduceVariant::kOps]) {
  using Value = typename Type::Value;
  kernels[0] = ReduceKernel<Type, Sum<Value>>;
  kernels[1] = ReduceKernel<Type, Mean<Value>>;
  kernels[2] = ReduceKernel<Type, Min<Value>>;
  kernels[3] = ReduceKernel<Type, Max<Value>>;
}

template <typename Signed, typename Unsigned>
constexpr void FillIntegers(ReduceVariant::ReduceKernel (&kernels)[ReduceVariant::kOps]) {
  kernels[0] = ReduceKernel<Plain<Unsigned>, Sum<Unsigned>>;
  kernels[1] = ReduceKernel<Plain<Unsigned>, IntegerMean<Unsigned, Signed>>;
  kernels[2] = ReduceKernel<Plain<Signed>, Min<Signed>>;
  kernels[3] = ReduceKernel<Plain<Signed>, Max<Signed>>;
}

// Makes the including file's variant.
constexpr ReduceVariant VariantNamed(const char* name) {
  ReduceVariant variant = {};
  variant.name = name;
  FillFloats<Plain<float>>(variant.reduce[0]);
  FillFloats<Plain<double>>(variant.reduce[1]);
  FillFloats<Bfloat>(variant.reduce[2]);
  FillFloats<Half>(variant.reduce[3]);
  FillIntegers<int32_t, uint32_t>(variant.reduce[4]);
  FillIntegers<int64_t, uint64_t>(variant.reduce[5]);
  variant.widen_bfloat16 = ConvertKernel<Bfloat, Plain<float>>;
  variant.widen_float16 = ConvertKernel<Half, Plain<float>>;
  variant.narrow_bfloat16 = ConvertKernel<Plain<float>, Bfloat>;
  variant.narrow_float16 = ConvertKernel<Plain<float>, Half>;
  variant.wide_sum_bfloat16 = ReduceKernel<Wide<Bfloat>, Sum<float>>;
  variant.wide_sum_float16 = ReduceKernel<Wide<Half>, Sum<float>>;
  return variant;
}

}  // namespace
}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_REDUCE_KERNELS_H_
