#include "mpi_group/reduce/reduce_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace hooke {
namespace {

// A type's values in memory (Stored) and in arithmetic (Value).
template <typename T>
struct Plain {
  using Stored = T;
  using Value = T;
  static Value Load(Stored stored) { return stored; }
  static Stored Store(Value value) { return value; }
};

struct Bfloat {
  using Stored = uint16_t;
  using Value = float;
  static Value Load(Stored stored) {
    const uint32_t bits = uint32_t{stored} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static Stored Store(Value value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
};

struct Half {
  using Stored = uint16_t;
  using Value = float;
  static Value Load(Stored stored) {
    const int exponent = (stored >> 10) & 31;
    const int fraction = stored & 1023;
    float magnitude = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    if (exponent == 0) magnitude = std::ldexp(static_cast<float>(fraction), -24);
    if (exponent == 31) {
      magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    }
    return (stored & 0x8000) != 0 ? -magnitude : magnitude;
  }
  static Stored Store(Value value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const float magnitude = std::fabs(value);
    if (std::isnan(value)) return static_cast<Stored>(sign | 0x7E00);
    // Halfway between the largest finite value and the next power of two.
    if (magnitude >= 65520) return static_cast<Stored>(sign | 0x7C00);
    if (magnitude == 0) return static_cast<Stored>(sign);
    const int exponent = std::max(std::ilogb(magnitude), -14);
    // From 1024 to 2048 with the leading one; below 1024 for a denormal. Added to the exponent, the leading one
    // completes it.
    const int fraction = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    return static_cast<Stored>(sign | (((exponent + 14) << 10) + fraction));
  }
};

template <typename V>
V Combine(ReduceOp op, V a, V b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      if constexpr (std::is_integral_v<V>) {  // Wraps around.
        using Unsigned = std::make_unsigned_t<V>;
        return static_cast<V>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
      }
      return a + b;
    case ReduceOp::kMin:
      return a < b || a != a ? a : b;
    case ReduceOp::kMax:
      return a > b || a != a ? a : b;
  }
  return a;
}

template <typename V>
V MeanOfSum(V sum, int mean_of) {
  if constexpr (std::is_integral_v<V>) return sum / mean_of;
  return sum * (1 / static_cast<V>(mean_of));
}

template <typename Type>
void ReduceAs(const Reduction& reduction, absl::Span<const char* const> sources, absl::Span<char* const> destinations,
              uint64_t values) {
  using Stored = typename Type::Stored;
  using Value = typename Type::Value;
  for (uint64_t i = 0; i < values; ++i) {
    Value result = Type::Load(reinterpret_cast<const Stored*>(sources[0])[i]);
    for (const char* source : sources.subspan(1)) {
      result = Combine(reduction.op, result, Type::Load(reinterpret_cast<const Stored*>(source)[i]));
    }
    if (reduction.op == ReduceOp::kMean && reduction.mean_of > 0) result = MeanOfSum(result, reduction.mean_of);
    for (char* destination : destinations) reinterpret_cast<Stored*>(destination)[i] = Type::Store(result);
  }
}

}  // namespace

void ReferenceReduce(const Reduction& reduction, absl::Span<const char* const> sources,
                     absl::Span<char* const> destinations, uint64_t values) {
  switch (reduction.type) {
    case DataType::kFloat32:
      return ReduceAs<Plain<float>>(reduction, sources, destinations, values);
    case DataType::kFloat64:
      return ReduceAs<Plain<double>>(reduction, sources, destinations, values);
    case DataType::kBFloat16:
      return ReduceAs<Bfloat>(reduction, sources, destinations, values);
    case DataType::kFloat16:
      return ReduceAs<Half>(reduction, sources, destinations, values);
    case DataType::kInt32:
      return ReduceAs<Plain<int32_t>>(reduction, sources, destinations, values);
    case DataType::kInt64:
      return ReduceAs<Plain<int64_t>>(reduction, sources, destinations, values);
  }
}

void ReferenceReduceWide(DataType type, absl::Span<const char* const> sources, absl::Span<float> to) {
  std::vector<float> source_values(to.size());
  for (size_t s = 0; s < sources.size(); ++s) {
    ReferenceWiden(type, {sources[s], to.size() * SizeOf(type)}, absl::MakeSpan(source_values));
    for (size_t i = 0; i < to.size(); ++i) to[i] = s == 0 ? source_values[i] : to[i] + source_values[i];
  }
}

void ReferenceWiden(DataType type, absl::Span<const char> from, absl::Span<float> to) {
  const auto* stored = reinterpret_cast<const uint16_t*>(from.data());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = type == DataType::kBFloat16 ? Bfloat::Load(stored[i]) : Half::Load(stored[i]);
  }
}

void ReferenceNarrow(DataType type, absl::Span<const float> from, absl::Span<char> to) {
  auto* stored = reinterpret_cast<uint16_t*>(to.data());
  for (size_t i = 0; i < from.size(); ++i) {
    stored[i] = type == DataType::kBFloat16 ? Bfloat::Store(from[i]) : Half::Store(from[i]);
  }
}

}  // namespace hooke
