#ifndef HOOKE_ALGORITHMS_FLOAT_CODES_H_
#define HOOKE_ALGORITHMS_FLOAT_CODES_H_

// Converts float32 values to 16-bit formats and back, in loops that compilers vectorize on any machine. Conversion
// rounds to nearest, ties to even. Values beyond the largest finite number become that number. The caller must not pass
// infinite values or NaN.

#include <cstdint>
#include <cstring>

namespace hooke {

inline uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// IEEE 754 binary16: 5 bits of exponent, 10 of fraction; largest 65504, smallest above zero 2^-24.
inline uint16_t ToFloat16(float value) {
  constexpr uint32_t kSmallestNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kHalf = 0x3f000000;
  constexpr uint32_t kLargest = 0x7bff;
  const uint32_t bits = FloatBits(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t sign = (bits >> 16) & 0x8000;
  // Below 2^-14: the last bit of 0.5 is worth 2^-24, so adding 0.5 rounds the value to a multiple of that.
  const uint32_t small = FloatBits(FloatOfBits(magnitude) + 0.5f) - kHalf;
  // From 2^-14 on: 13 fraction bits are rounded away, and the exponent's bias goes from 127 to 15.
  const uint32_t normal = ((magnitude + 0xfff + ((magnitude >> 13) & 1)) >> 13) - (112u << 10);
  const uint32_t capped = normal > kLargest ? kLargest : normal;
  return static_cast<uint16_t>(sign | (magnitude < kSmallestNormal ? small : capped));
}

inline float FromFloat16(uint16_t code) {
  constexpr float kSmallest = 1.0f / (1 << 24);
  const uint32_t magnitude = code & 0x7fff;
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000) << 16;
  const uint32_t small = FloatBits(static_cast<float>(static_cast<int32_t>(magnitude)) * kSmallest);
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  return FloatOfBits(sign | (magnitude < 0x400 ? small : normal));
}

inline bool IsFiniteFloat16(uint16_t code) { return (code & 0x7c00) != 0x7c00; }

// bfloat16 is the upper half of a float32.
inline uint16_t ToBFloat16(float value) {
  constexpr uint32_t kLargest = 0x7f7f;
  const uint32_t bits = FloatBits(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = (magnitude + 0x7fff + ((magnitude >> 16) & 1)) >> 16;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000) | (rounded > kLargest ? kLargest : rounded));
}

inline float FromBFloat16(uint16_t code) { return FloatOfBits(static_cast<uint32_t>(code) << 16); }

inline bool IsFiniteBFloat16(uint16_t code) { return (code & 0x7f80) != 0x7f80; }

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_FLOAT_CODES_H_
