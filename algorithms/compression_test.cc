#include "algorithms/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "algorithms/compression_reference.h"
#include "algorithms/float_codes.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr size_t kLengths[] = {1, 2, 127, 128, 129, 255, 256, 257, 1000, 16384, 16385, 40000};

std::vector<Encoding> All() {
  return {{Compression::kNone, 0},   {Compression::kFloat16, 0}, {Compression::kBFloat16, 0},
          {Compression::kInt8, 0},   {Compression::kInt4, 0},    {Compression::kTopK, 1},
          {Compression::kTopK, 164}, {Compression::kTopK, 16384}};
}

std::string Encoded(const Encoding& encoding, const std::vector<float>& values) {
  std::string bytes(EncodedBytes(encoding, values.size()), 'x');
  const absl::Status status = Encode(encoding, values, absl::MakeSpan(&bytes[0], bytes.size()));
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

absl::Status DecodeStatus(const Encoding& encoding, const std::string& bytes, size_t values) {
  std::vector<float> decoded(values);
  return Decode(encoding, bytes, absl::MakeSpan(decoded));
}

std::vector<float> Decoded(const Encoding& encoding, const std::string& bytes, size_t values) {
  std::vector<float> decoded(values);
  const absl::Status status = Decode(encoding, bytes, absl::MakeSpan(decoded));
  EXPECT_TRUE(status.ok()) << CompressionName(encoding.compression) << ": " << status;
  return decoded;
}

// Compares bitwise, so that -0 differs from 0.
bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Returns values of one kind, chosen at random: normal ones, random bits, ties of a rounding, ends of ranges with
// zeros, or few distinct ones.
std::vector<float> Strange(std::mt19937_64& random, size_t count) {
  std::normal_distribution<float> normal;
  const float ends[] = {0.0f,
                        -0.0f,
                        kLargest,
                        -kLargest,
                        65504,
                        65519.99f,
                        65520,
                        1e-45f,
                        6e-8f,
                        5.96e-8f,
                        2.98e-8f,
                        6.1e-5f,
                        std::numeric_limits<float>::min(),
                        1.5e-36f,
                        3.389e38f};
  std::vector<float> values(count);
  const uint64_t kind = random() % 6;
  const int shift = static_cast<int>(random() % 60) - 30;
  for (float& value : values) {
    const uint32_t bits = static_cast<uint32_t>(random());
    switch (kind) {
      case 0:
        value = std::ldexp(normal(random), shift);
        break;
      case 1:
        value = FloatOfBits(bits);
        break;
      case 2:
        value = FloatOfBits(bits & 0xfffff000);
        break;
      case 3:
        value = FloatOfBits((bits & 0x8fff8000) | 0x30000000);
        break;
      case 4:
        value = ends[random() % std::size(ends)];
        break;
      default:
        value = static_cast<float>(static_cast<int>(random() % 5) - 2);
    }
    if (!std::isfinite(value)) value = 1;
  }
  return values;
}

// The fast loops give the reference's bytes and values, bit by bit, for any values of any length. The bytes have the
// length that EncodedBytes returns.
TEST(Compression, IsTheReference) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    for (const size_t length : kLengths) {
      const std::vector<float> values = Strange(random, length);
      for (const Encoding& encoding : All()) {
        const std::string bytes = Encoded(encoding, values);
        ASSERT_EQ(bytes, ReferenceEncode(encoding, values))
            << CompressionName(encoding.compression) << " " << length << " seed " << seed;
        ASSERT_TRUE(Same(Decoded(encoding, bytes, length), ReferenceDecode(encoding, bytes, length)))
            << CompressionName(encoding.compression) << " " << length << " seed " << seed;
      }
    }
  }
}

// Each finite one of the 65536 16-bit codes decodes to a value that encodes to the same code.
TEST(Compression, EveryCodeOf16Bits) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const uint16_t c = static_cast<uint16_t>(code);
    if (IsFiniteFloat16(c)) {
      ASSERT_EQ(ToFloat16(FromFloat16(c)), c);
    }
    if (IsFiniteBFloat16(c)) {
      ASSERT_EQ(ToBFloat16(FromBFloat16(c)), c);
    }
  }
  EXPECT_EQ(FromFloat16(0x3c00), 1.0f);
  EXPECT_EQ(FromFloat16(0x7bff), 65504.0f);
  EXPECT_EQ(FromFloat16(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(ToFloat16(1e30f), 0x7bff);
  EXPECT_EQ(ToFloat16(-kLargest), 0xfbff);
  EXPECT_EQ(ToBFloat16(kLargest), 0x7f7f);
}

// A decoded value is as near to the original as docs/compression.md promises, computed in double.
TEST(Compression, Errors) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(kTopKRun + 77);
  for (float& value : values) value = normal(random);
  const auto worst = [&](Compression compression, size_t run) {
    const Encoding encoding = {compression, 0};
    const std::vector<float> decoded = Decoded(encoding, Encoded(encoding, values), values.size());
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      double unit = std::abs(double{values[i]});
      for (size_t j = i / run * run; j < std::min(values.size(), (i / run + 1) * run); ++j) {
        unit = std::max(unit, std::abs(double{values[j]}));
      }
      worst = std::max(worst, std::abs(double{values[i]} - double{decoded[i]}) / unit);
    }
    return worst;
  };
  EXPECT_LE(worst(Compression::kFloat16, 1), std::ldexp(1, -11));
  EXPECT_LE(worst(Compression::kBFloat16, 1), std::ldexp(1, -8));
  EXPECT_LE(worst(Compression::kInt8, kInt8Run), 0.50001 / 127);
  EXPECT_LE(worst(Compression::kInt4, kInt4Run), 0.50001 / 7);
}

// Under encodings other than kTopK, a rounded value stays as it is when it is encoded and decoded again. So if a
// difference is rounded before it moves the center, the group gets exactly that difference.
TEST(Compression, IsStable) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<float> values = Strange(random, 1 + random() % 700);
    for (const Encoding& encoding : All()) {
      if (encoding.compression == Compression::kTopK) continue;
      const std::vector<float> once = Decoded(encoding, Encoded(encoding, values), values.size());
      ASSERT_TRUE(Same(Decoded(encoding, Encoded(encoding, once), once.size()), once))
          << CompressionName(encoding.compression) << " seed " << seed;
      std::vector<float> rounded = values;
      RoundToEncoding(encoding, absl::MakeSpan(rounded));
      ASSERT_TRUE(Same(rounded, once));
    }
  }
}

// Blocks of whole runs are encoded to the same bytes alone and concatenated in one message.
TEST(Compression, RunsAreIndependent) {
  std::mt19937_64 random(3);
  std::vector<float> first = Strange(random, 2 * kCompressionRun);
  const std::vector<float> second = Strange(random, 100);
  for (const Encoding& encoding : All()) {
    std::vector<float> both = first;
    both.insert(both.end(), second.begin(), second.end());
    EXPECT_EQ(Encoded(encoding, both), Encoded(encoding, first) + Encoded(encoding, second));
  }
}

// kTopK keeps the values of largest magnitude in a run, in the order of their indices. Among equal magnitudes it keeps
// those with the lowest indices. If a run has fewer nonzero values, the first zeros are kept too.
TEST(Compression, KeepsTheLargest) {
  std::vector<float> values(kTopKRun);
  values[9] = -3;
  values[4] = 2;
  values[100] = 2;
  values[50] = 2;
  const Encoding three = {Compression::kTopK, 3};
  const std::string bytes = Encoded(three, values);
  EXPECT_EQ(bytes, std::string("\x04\x00\x00\x40\x09\x00\x40\xc0\x32\x00\x00\x40", 12));
  const Encoding five = {Compression::kTopK, 6};
  EXPECT_EQ(Encoded(five, values).substr(0, 8), std::string("\x00\x00\x00\x00\x01\x00\x00\x00", 8));
  std::vector<float> expected = values;
  expected[100] = 0;
  EXPECT_EQ(Decoded(three, bytes, kTopKRun), expected);
  EXPECT_EQ(Decoded(five, Encoded(five, values), kTopKRun), values);
  // A short run keeps one value, too.
  EXPECT_THAT(Decoded(three, Encoded(three, {1, -7, 3}), 3), ElementsAre(0, -7, 0));
}

TEST(Compression, BytesPerValue) {
  EXPECT_EQ(EncodedBytes({Compression::kFloat16, 0}, 16384), 32768u);
  EXPECT_EQ(EncodedBytes({Compression::kInt8, 0}, 16384), 16640u);  // 3.94 times fewer than float32.
  EXPECT_EQ(EncodedBytes({Compression::kInt4, 0}, 16384), 8704u);
  EXPECT_EQ(EncodedBytes({Compression::kTopK, TopKOf(0.01)}, 16384), 656u);
  EXPECT_EQ(TopKOf(1e-9), 1);
  EXPECT_EQ(TopKOf(1), kTopKRun);
}

// Every encoding refuses a value that is not finite, and names its place.
TEST(Compression, RefusesWhatIsNotFinite) {
  for (const Encoding& encoding : All()) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values(700);
      values[613] = bad;
      std::string bytes(EncodedBytes(encoding, values.size()), '\0');
      const absl::Status status = Encode(encoding, values, absl::MakeSpan(&bytes[0], bytes.size()));
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("value 613 is "));
    }
  }
}

// Bytes that break the rules of the format are refused, and the text says what is wrong.
TEST(Compression, RefusesWhatNoEncoderWrites) {
  const auto refusal = [](const Encoding& encoding, const std::string& bytes, size_t values) {
    const absl::Status status = DecodeStatus(encoding, bytes, values);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const auto scaled = [](float scale, const std::string& codes) {
    return std::string(reinterpret_cast<const char*>(&scale), sizeof scale) + codes;
  };
  const Encoding int8 = {Compression::kInt8, 0};
  const Encoding int4 = {Compression::kInt4, 0};
  const Encoding two = {Compression::kTopK, 16384};
  for (const float scale : {-1.0f, -0.0f, 1e-40f, kLargest / 100, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), FloatOfBits(0x3f800001)}) {
    EXPECT_THAT(refusal(int8, scaled(scale, "\x01"), 1), HasSubstr("a scale is "));
  }
  EXPECT_THAT(refusal(int8, scaled(1, "\x80"), 1), HasSubstr("-127 to 127 are allowed"));
  EXPECT_THAT(refusal(int4, scaled(1, "\x08"), 2), HasSubstr("-7 to 7 are allowed"));
  EXPECT_THAT(refusal(int4, scaled(1, "\x80"), 2), HasSubstr("-7 to 7 are allowed"));
  EXPECT_THAT(refusal(int4, scaled(1, "\x11"), 1), HasSubstr("0 behind the last one"));
  EXPECT_THAT(refusal({Compression::kFloat16, 0}, std::string("\x00\x7c", 2), 1), HasSubstr("values are finite"));
  EXPECT_THAT(refusal({Compression::kBFloat16, 0}, std::string("\x80\x7f", 2), 1), HasSubstr("values are finite"));
  EXPECT_THAT(refusal(two, std::string("\1\0\0\0\1\0\0\0", 8), 2), HasSubstr("is 1; allowed there is 2 to before 2"));
  EXPECT_THAT(refusal(two, std::string("\2\0\0\0\1\0\0\0", 8), 2), HasSubstr("is 2; allowed there is 0 to before 2"));
  EXPECT_THAT(refusal(two, std::string("\0\0\x80\x7f\1\0\0\0", 8), 2), HasSubstr("values are finite"));
}

// Random bytes of the right length either decode to finite values or are refused.
TEST(Compression, AnyBytes) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    const size_t count = 1 + random() % 400;
    for (const Encoding& encoding : All()) {
      std::string bytes = Encoded(encoding, Strange(random, count));
      // About half of the messages get a few random bytes. In the others most bytes become random.
      const size_t wrong = random() % 2 == 0 ? 1 + random() % 3 : bytes.size();
      for (size_t i = 0; i < wrong; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
      std::vector<float> values(count);
      if (!Decode(encoding, bytes, absl::MakeSpan(values)).ok()) continue;
      ASSERT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }));
    }
  }
}

// The encoding of a center drops no value and has more than 15 distinct values. A difference is encoded as the message
// was.
TEST(Compression, Answers) {
  const Encoding top_k = {Compression::kTopK, 9};
  EXPECT_EQ(AnswerEncoding(top_k, true).compression, Compression::kFloat16);
  EXPECT_EQ(AnswerEncoding(top_k, true).top_k, 0);
  EXPECT_EQ(AnswerEncoding({Compression::kInt4, 0}, true).compression, Compression::kInt8);
  EXPECT_EQ(AnswerEncoding({Compression::kInt4, 0}, false).compression, Compression::kInt4);
  EXPECT_EQ(AnswerEncoding({Compression::kInt8, 0}, true).compression, Compression::kInt8);
}

}  // namespace
}  // namespace hooke
