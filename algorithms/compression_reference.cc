#include "algorithms/compression_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace hooke {
namespace {

// A 16-bit floating-point format.
struct Small {
  int fraction_bits;
  int exponent_min;  // The smallest normal number is 2^exponent_min.
  int exponent_max;  // The exponent of the largest number.
};
constexpr Small kHalf = {10, -14, 15};
constexpr Small kBrain = {7, -126, 127};

Small KindOf(const Encoding& encoding) { return encoding.compression == Compression::kFloat16 ? kHalf : kBrain; }

void Append(uint16_t number, std::string& bytes) {
  bytes.push_back(static_cast<char>(number & 0xff));
  bytes.push_back(static_cast<char>(number >> 8));
}

uint16_t Number(const std::string& bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) | static_cast<uint8_t>(bytes[at + 1]) << 8);
}

// nearbyint rounds ties to even, because no code here changes the rounding mode.
uint16_t Round(const Small& kind, float value) {
  const double magnitude = std::abs(static_cast<double>(value));
  const double largest = std::ldexp(2 - std::ldexp(1, -kind.fraction_bits), kind.exponent_max);
  const int exponent = magnitude == 0 ? kind.exponent_min : std::max(std::ilogb(magnitude), kind.exponent_min);
  // Count in units of the last bit. The leading bit of a normal number is 2^fraction_bits units.
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(magnitude, kind.fraction_bits - exponent)), exponent - kind.fraction_bits);
  const double capped = std::min(rounded, largest);
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (capped < std::ldexp(1, kind.exponent_min)) {
    return static_cast<uint16_t>(sign + std::lround(std::ldexp(capped, kind.fraction_bits - kind.exponent_min)));
  }
  const int own = std::ilogb(capped);
  const long fraction = std::lround(std::ldexp(capped, kind.fraction_bits - own)) - (1L << kind.fraction_bits);
  return static_cast<uint16_t>(sign + ((own - kind.exponent_min + 1) << kind.fraction_bits) + fraction);
}

float Value(const Small& kind, uint16_t code) {
  const int magnitude = code & 0x7fff;
  const int exponent = magnitude >> kind.fraction_bits;
  const int fraction = magnitude & ((1 << kind.fraction_bits) - 1);
  const int leading = exponent == 0 ? 0 : 1 << kind.fraction_bits;
  const double value =
      std::ldexp(leading + fraction, std::max(exponent, 1) - 1 + kind.exponent_min - kind.fraction_bits);
  return static_cast<float>(code & 0x8000 ? -value : value);
}

struct Scaled {
  size_t run;
  int most;
};
Scaled ScaledKind(const Encoding& encoding) {
  return encoding.compression == Compression::kInt8 ? Scaled{kInt8Run, 127} : Scaled{kInt4Run, 7};
}

// Returns largest / most, rounded to float32 and then down to 17 significant bits; 0 if that would be subnormal.
float Scale(absl::Span<const float> run, int most) {
  double largest = 0;
  for (const float value : run) largest = std::max(largest, std::abs(static_cast<double>(value)));
  const double quotient = static_cast<float>(largest / most);
  if (quotient < std::ldexp(1, -126)) return 0;
  const int last = std::ilogb(quotient) - 16;
  return static_cast<float>(std::ldexp(std::floor(std::ldexp(quotient, -last)), last));
}

void EncodeRun(const Scaled& kind, absl::Span<const float> run, std::string& bytes) {
  const float scale = Scale(run, kind.most);
  bytes.append(reinterpret_cast<const char*>(&scale), sizeof scale);
  std::vector<int> codes;
  codes.reserve(run.size() + 1);
  for (const float value : run) {
    codes.push_back(scale == 0 ? 0 : static_cast<int>(std::nearbyint(static_cast<float>(double{value} / scale))));
  }
  if (kind.most == 127) {
    for (const int code : codes) bytes.push_back(static_cast<char>(code));
    return;
  }
  codes.push_back(0);
  for (size_t i = 0; i + 1 < codes.size(); i += 2) {
    bytes.push_back(static_cast<char>((codes[i] & 15) + 16 * (codes[i + 1] & 15)));
  }
}

void DecodeRun(const Scaled& kind, const std::string& bytes, size_t& at, absl::Span<float> run) {
  float scale;
  std::copy_n(bytes.data() + at, sizeof scale, reinterpret_cast<char*>(&scale));
  at += sizeof scale;
  for (size_t i = 0; i < run.size(); ++i) {
    int code = static_cast<uint8_t>(bytes[at + (kind.most == 127 ? i : i / 2)]);
    if (kind.most == 7) code = i % 2 == 0 ? code & 15 : code >> 4;
    if (code > kind.most) code -= kind.most == 127 ? 256 : 16;
    run[i] = static_cast<float>(double{scale} * code);
  }
  at += kind.most == 127 ? run.size() : (run.size() + 1) / 2;
}

size_t KeptOf(const Encoding& encoding, size_t values) {
  return static_cast<size_t>(std::ceil(static_cast<double>(encoding.top_k) * static_cast<double>(values) / kTopKRun));
}

void EncodeLargest(const Encoding& encoding, absl::Span<const float> run, std::string& bytes) {
  std::vector<size_t> order(run.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [run](size_t a, size_t b) { return std::abs(run[a]) > std::abs(run[b]); });
  order.resize(KeptOf(encoding, run.size()));
  std::sort(order.begin(), order.end());
  for (const size_t index : order) {
    Append(static_cast<uint16_t>(index), bytes);
    Append(Round(kBrain, run[index]), bytes);
  }
}

}  // namespace

std::string ReferenceEncode(const Encoding& encoding, absl::Span<const float> values) {
  std::string bytes;
  switch (encoding.compression) {
    case Compression::kNone:
      return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
    case Compression::kFloat16:
    case Compression::kBFloat16:
      for (const float value : values) Append(Round(KindOf(encoding), value), bytes);
      return bytes;
    case Compression::kInt8:
    case Compression::kInt4: {
      const Scaled kind = ScaledKind(encoding);
      for (size_t at = 0; at < values.size(); at += kind.run) EncodeRun(kind, values.subspan(at, kind.run), bytes);
      return bytes;
    }
    case Compression::kTopK:
      for (size_t at = 0; at < values.size(); at += kTopKRun) {
        EncodeLargest(encoding, values.subspan(at, kTopKRun), bytes);
      }
      return bytes;
  }
  return bytes;
}

std::vector<float> ReferenceDecode(const Encoding& encoding, const std::string& bytes, size_t values) {
  std::vector<float> decoded(values);
  size_t at = 0;
  switch (encoding.compression) {
    case Compression::kNone:
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(decoded.data()));
      break;
    case Compression::kFloat16:
    case Compression::kBFloat16:
      for (size_t i = 0; i < values; ++i) decoded[i] = Value(KindOf(encoding), Number(bytes, 2 * i));
      break;
    case Compression::kInt8:
    case Compression::kInt4: {
      const Scaled kind = ScaledKind(encoding);
      for (size_t i = 0; i < values; i += kind.run) {
        DecodeRun(kind, bytes, at, absl::MakeSpan(decoded).subspan(i, kind.run));
      }
      break;
    }
    case Compression::kTopK:
      for (size_t i = 0; i < values; i += kTopKRun) {
        const size_t kept = KeptOf(encoding, std::min<size_t>(kTopKRun, values - i));
        for (size_t entry = 0; entry < kept; ++entry, at += 4) {
          decoded[i + Number(bytes, at)] = Value(kBrain, Number(bytes, at + 2));
        }
      }
      break;
  }
  return decoded;
}

}  // namespace hooke
