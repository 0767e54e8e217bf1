#include "algorithms/compression.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/base/config.h"
#include "absl/base/macros.h"
#include "absl/strings/str_cat.h"
#include "algorithms/float_codes.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "Encodings hold little-endian numbers; this code copies them as they lie in memory."
#endif

namespace hooke {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
constexpr uint32_t kExponent = 0x7f800000;
constexpr size_t kScaleBytes = sizeof(float);
constexpr size_t kEntryBytes = 2 * sizeof(uint16_t);  // kTopK: index and value.

// Returns the bits of the largest magnitude. Float magnitudes have the same order as their bits, and compilers
// vectorize a maximum of integers.
uint32_t LargestMagnitude(absl::Span<const float> values) {
  int32_t largest = 0;
  for (const float value : values) {
    const int32_t magnitude = static_cast<int32_t>(FloatBits(value) & kMagnitude);
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<uint32_t>(largest);
}

absl::Status CheckFinite(absl::Span<const float> values) {
  if (LargestMagnitude(values) < kExponent) return absl::OkStatus();
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  return absl::InvalidArgumentError(
      absl::StrCat("value ", bad - values.begin(), " is ", *bad, "; only finite values can be encoded"));
}

// ---- float16 and bfloat16: sixteen bits for each value.

// Codes pass through a small array of this length, because the bytes of a message may be unaligned.
constexpr size_t kCodes = 256;

template <uint16_t (*ToCode)(float)>
void EncodeCodes(absl::Span<const float> values, char* bytes) {
  uint16_t codes[kCodes];
  for (size_t done = 0; done < values.size(); done += kCodes) {
    const size_t count = std::min(kCodes, values.size() - done);
    const float* from = values.data() + done;
    for (size_t i = 0; i < count; ++i) codes[i] = ToCode(from[i]);
    std::memcpy(bytes + done * sizeof(uint16_t), codes, count * sizeof(uint16_t));
  }
}

template <float (*FromCode)(uint16_t), bool (*IsFinite)(uint16_t)>
absl::Status DecodeCodes(const char* bytes, absl::Span<float> values) {
  uint16_t codes[kCodes];
  for (size_t done = 0; done < values.size(); done += kCodes) {
    const size_t count = std::min(kCodes, values.size() - done);
    std::memcpy(codes, bytes + done * sizeof(uint16_t), count * sizeof(uint16_t));
    float* to = values.data() + done;
    uint16_t bad = 0;
    for (size_t i = 0; i < count; ++i) {
      to[i] = FromCode(codes[i]);
      bad |= IsFinite(codes[i]) ? 0 : 1;
    }
    if (bad == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("among the 16-bit values from ", done, " on, ", count,
                                                   " of them, one is infinite or not a number; values are finite"));
  }
  return absl::OkStatus();
}

// ---- int8 and int4: a scale for each run, and a small integer code for each value. value = scale * code is exact,
// because a scale has 17 significant bits.

constexpr uint32_t kScaleMask = 0xffffff80;

// Returns the scale with which values up to `largest` (its bits) get codes from -most to most. Returns 0 where the
// scale would be subnormal.
float ScaleOf(uint32_t largest, float most) {
  const float scale = FloatOfBits(FloatBits(FloatOfBits(largest) / most) & kScaleMask);
  return scale < std::numeric_limits<float>::min() ? 0.0f : scale;
}

absl::Status CheckScale(float scale, float most) {
  const uint32_t bits = FloatBits(scale);
  const bool normal = scale >= std::numeric_limits<float>::min() && std::isfinite(scale * most);
  if (bits == 0 || (normal && (bits & ~kScaleMask) == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a scale is ", scale, " (bits ", absl::Hex(bits, absl::kZeroPad8),
      "); it is 0, or positive, not subnormal, with its lowest 7 bits 0, and ", most, " times it is finite"));
}

// Rounds to the nearest integer, ties to even, for magnitudes below 2^22. Adding kShift makes the sum at least 2^23,
// where a float has no fraction bits, so the addition rounds.
int32_t Nearest(float value) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return static_cast<int32_t>(value + kShift - kShift);
}

void CodesOf(const float* values, size_t count, float scale, int8_t* codes) {
  const float divisor = scale == 0 ? std::numeric_limits<float>::max() : scale;
  for (size_t i = 0; i < count; ++i) codes[i] = static_cast<int8_t>(Nearest(values[i] / divisor));
}

void ValuesOf(const int8_t* codes, size_t count, float scale, float* values) {
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(codes[i]) * scale;
}

struct Int8 {
  static constexpr float kMost = 127;
  static constexpr uint64_t kRun = kInt8Run;
  static constexpr size_t Bytes(size_t values) { return values; }
  static void Pack(const int8_t* codes, size_t count, char* bytes) { std::memcpy(bytes, codes, count); }
  // Returns false if a code is not allowed.
  static bool Unpack(const char* bytes, size_t count, int8_t* codes) {
    std::memcpy(codes, bytes, count);
    uint8_t bad = 0;
    for (size_t i = 0; i < count; ++i) bad |= codes[i] == -128 ? 1 : 0;
    return bad == 0;
  }
};

// The lower half of a byte holds the code of the value with the even index.
struct Int4 {
  static constexpr float kMost = 7;
  static constexpr uint64_t kRun = kInt4Run;
  static constexpr size_t Bytes(size_t values) { return (values + 1) / 2; }
  static void Pack(const int8_t* codes, size_t count, char* bytes) {
    for (size_t i = 0; i < count / 2; ++i) {
      bytes[i] = static_cast<char>((codes[2 * i] & 0xf) | ((codes[2 * i + 1] & 0xf) << 4));
    }
    if (count % 2 == 1) bytes[count / 2] = static_cast<char>(codes[count - 1] & 0xf);
  }
  static bool Unpack(const char* bytes, size_t count, int8_t* codes) {
    uint8_t bad = 0;
    for (size_t i = 0; i < Bytes(count); ++i) {
      const uint8_t both = static_cast<uint8_t>(bytes[i]);
      codes[2 * i] = static_cast<int8_t>(((both & 0xf) ^ 8) - 8);
      codes[2 * i + 1] = static_cast<int8_t>(((both >> 4) ^ 8) - 8);
      bad |= (both & 0xf) == 8 || (both >> 4) == 8 ? 1 : 0;
    }
    // With an odd count the last half byte has no value and must be 0.
    return bad == 0 && (count % 2 == 0 || codes[count] == 0);
  }
};

template <typename Code>
void EncodeScaled(absl::Span<const float> values, char* bytes) {
  int8_t codes[Code::kRun];
  for (; !values.empty(); values.remove_prefix(std::min<size_t>(Code::kRun, values.size()))) {
    const absl::Span<const float> run = values.subspan(0, Code::kRun);
    const float scale = ScaleOf(LargestMagnitude(run), Code::kMost);
    std::memcpy(bytes, &scale, kScaleBytes);
    CodesOf(run.data(), run.size(), scale, codes);
    Code::Pack(codes, run.size(), bytes + kScaleBytes);
    bytes += kScaleBytes + Code::Bytes(run.size());
  }
}

template <typename Code>
absl::Status DecodeScaled(const char* bytes, absl::Span<float> values) {
  int8_t codes[Code::kRun];
  for (; !values.empty(); values.remove_prefix(std::min<size_t>(Code::kRun, values.size()))) {
    const absl::Span<float> run = values.subspan(0, Code::kRun);
    float scale;
    std::memcpy(&scale, bytes, kScaleBytes);
    if (absl::Status status = CheckScale(scale, Code::kMost); !status.ok()) return status;
    if (!Code::Unpack(bytes + kScaleBytes, run.size(), codes)) {
      return absl::InvalidArgumentError(absl::StrCat("a code is out of range; -", Code::kMost, " to ", Code::kMost,
                                                     " are allowed, and 0 behind the last one"));
    }
    ValuesOf(codes, run.size(), scale, run.data());
    bytes += kScaleBytes + Code::Bytes(run.size());
  }
  return absl::OkStatus();
}

template <typename Code>
uint64_t ScaledBytes(uint64_t values) {
  const uint64_t rest = values % Code::kRun;
  const uint64_t runs = values / Code::kRun * (kScaleBytes + Code::Bytes(Code::kRun));
  return runs + (rest == 0 ? 0 : kScaleBytes + Code::Bytes(rest));
}

// ---- top_k: the largest values of each run.

uint64_t Kept(uint64_t top_k, uint64_t values) { return (top_k * values + kTopKRun - 1) / kTopKRun; }

// Entries are ascending by index. Among equal magnitudes, those with the lower indices are kept.
void EncodeTopK(uint16_t top_k, absl::Span<const float> values, char* bytes) {
  std::vector<uint32_t> magnitudes;
  magnitudes.reserve(std::min<size_t>(kTopKRun, values.size()));
  for (; !values.empty(); values.remove_prefix(std::min<size_t>(kTopKRun, values.size()))) {
    const absl::Span<const float> run = values.subspan(0, kTopKRun);
    const size_t kept = Kept(top_k, run.size());
    magnitudes.clear();
    for (const float value : run) magnitudes.push_back(FloatBits(value) & kMagnitude);
    const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(kept - 1);
    std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<uint32_t>());
    const uint32_t least = *last;
    // nth_element has left the larger magnitudes before `last`; the rest of the kept values are ties at `least`.
    const auto above = std::count_if(magnitudes.begin(), last, [least](uint32_t each) { return each > least; });
    size_t ties = kept - static_cast<size_t>(above);
    for (size_t i = 0; i < run.size(); ++i) {
      const uint32_t magnitude = FloatBits(run[i]) & kMagnitude;
      if (magnitude < least || (magnitude == least && ties == 0)) continue;
      if (magnitude == least) --ties;
      const uint16_t entry[] = {static_cast<uint16_t>(i), ToBFloat16(run[i])};
      std::memcpy(bytes, entry, kEntryBytes);
      bytes += kEntryBytes;
    }
  }
}

absl::Status DecodeTopK(uint16_t top_k, const char* bytes, absl::Span<float> values) {
  std::fill(values.begin(), values.end(), 0.0f);
  for (; !values.empty(); values.remove_prefix(std::min<size_t>(kTopKRun, values.size()))) {
    const absl::Span<float> run = values.subspan(0, kTopKRun);
    uint32_t lowest = 0;  // The next index must not be lower.
    for (uint64_t i = Kept(top_k, run.size()); i > 0; --i, bytes += kEntryBytes) {
      uint16_t entry[2];
      std::memcpy(entry, bytes, kEntryBytes);
      if (entry[0] < lowest || entry[0] >= run.size()) {
        return absl::InvalidArgumentError(absl::StrCat("the index of a kept value is ", entry[0], "; allowed there is ",
                                                       lowest, " to before ", run.size(), ", as indices ascend"));
      }
      if (!IsFiniteBFloat16(entry[1])) {
        return absl::InvalidArgumentError("a kept value is infinite or not a number; values are finite");
      }
      run[entry[0]] = FromBFloat16(entry[1]);
      lowest = entry[0] + uint32_t{1};
    }
  }
  return absl::OkStatus();
}

uint64_t TopKBytes(uint64_t top_k, uint64_t values) {
  return (values / kTopKRun * top_k + Kept(top_k, values % kTopKRun)) * kEntryBytes;
}

}  // namespace

const char* CompressionName(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kFloat16:
      return "float16";
    case Compression::kBFloat16:
      return "bfloat16";
    case Compression::kInt8:
      return "int8";
    case Compression::kInt4:
      return "int4";
    case Compression::kTopK:
      return "top_k";
  }
  return "unknown";
}

bool operator==(const Encoding& a, const Encoding& b) { return a.compression == b.compression && a.top_k == b.top_k; }

uint16_t TopKOf(double fraction) {
  ABSL_ASSERT(fraction > 0 && fraction <= 1);
  return static_cast<uint16_t>(std::ceil(fraction * static_cast<double>(kTopKRun)));
}

Encoding AnswerEncoding(const Encoding& sent, bool answers_center) {
  if (!answers_center) return sent;
  if (sent.compression == Compression::kTopK) return {Compression::kFloat16, 0};
  if (sent.compression == Compression::kInt4) return {Compression::kInt8, 0};
  return sent;
}

uint64_t EncodedBytes(const Encoding& encoding, uint64_t values) {
  switch (encoding.compression) {
    case Compression::kNone:
      return values * sizeof(float);
    case Compression::kFloat16:
    case Compression::kBFloat16:
      return values * sizeof(uint16_t);
    case Compression::kInt8:
      return ScaledBytes<Int8>(values);
    case Compression::kInt4:
      return ScaledBytes<Int4>(values);
    case Compression::kTopK:
      return TopKBytes(encoding.top_k, values);
  }
  return 0;
}

absl::Status Encode(const Encoding& encoding, absl::Span<const float> values, absl::Span<char> bytes) {
  ABSL_ASSERT(bytes.size() == EncodedBytes(encoding, values.size()));
  if (absl::Status status = CheckFinite(values); !status.ok()) return status;
  switch (encoding.compression) {
    case Compression::kNone:
      std::memcpy(bytes.data(), values.data(), bytes.size());
      break;
    case Compression::kFloat16:
      EncodeCodes<ToFloat16>(values, bytes.data());
      break;
    case Compression::kBFloat16:
      EncodeCodes<ToBFloat16>(values, bytes.data());
      break;
    case Compression::kInt8:
      EncodeScaled<Int8>(values, bytes.data());
      break;
    case Compression::kInt4:
      EncodeScaled<Int4>(values, bytes.data());
      break;
    case Compression::kTopK:
      EncodeTopK(encoding.top_k, values, bytes.data());
      break;
  }
  return absl::OkStatus();
}

absl::Status Decode(const Encoding& encoding, absl::Span<const char> bytes, absl::Span<float> values) {
  ABSL_ASSERT(bytes.size() == EncodedBytes(encoding, values.size()));
  switch (encoding.compression) {
    case Compression::kNone:
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return CheckFinite(values);
    case Compression::kFloat16:
      return DecodeCodes<FromFloat16, IsFiniteFloat16>(bytes.data(), values);
    case Compression::kBFloat16:
      return DecodeCodes<FromBFloat16, IsFiniteBFloat16>(bytes.data(), values);
    case Compression::kInt8:
      return DecodeScaled<Int8>(bytes.data(), values);
    case Compression::kInt4:
      return DecodeScaled<Int4>(bytes.data(), values);
    case Compression::kTopK:
      return DecodeTopK(encoding.top_k, bytes.data(), values);
  }
  return absl::InvalidArgumentError("no known compression");
}

void RoundToEncoding(const Encoding& encoding, absl::Span<float> values) {
  if (encoding.compression == Compression::kNone) return;
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (float& value : values) value = std::min(std::max(value, -kLargest), kLargest);
  std::vector<char> bytes(EncodedBytes(encoding, std::min(values.size(), kCompressionRun)));
  for (; !values.empty(); values.remove_prefix(std::min<size_t>(kCompressionRun, values.size()))) {
    const absl::Span<float> run = values.subspan(0, kCompressionRun);
    const absl::Span<char> encoded = absl::MakeSpan(bytes).subspan(0, EncodedBytes(encoding, run.size()));
    // Neither Encode nor Decode can fail: the values are finite, and Decode reads what Encode wrote.
    Encode(encoding, run, encoded).IgnoreError();
    Decode(encoding, encoded, run).IgnoreError();
  }
}

}  // namespace hooke
