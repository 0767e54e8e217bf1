#include "mpi_group/reduce/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "mpi_group/reduce/reduce_dispatch.h"
#include "mpi_group/reduce/reduce_reference.h"
#include "mpi_group/reduce/reduce_variant.h"

namespace hooke {
namespace {

using testing::ElementsAre;

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kBFloat16,
                               DataType::kFloat16, DataType::kInt32,   DataType::kInt64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax};
constexpr uint64_t kSizes[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 4099};
constexpr int kMostSources = 5;

// The bit layout of a type; integers have no exponent bits.
struct Format {
  int bits;
  int exponent_bits;
  int FractionBits() const { return bits - 1 - exponent_bits; }
  uint64_t Infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << FractionBits(); }
  uint64_t Magnitude(uint64_t value) const { return value & ~(uint64_t{1} << (bits - 1)); }
  bool IsNan(uint64_t value) const { return exponent_bits > 0 && Magnitude(value) > Infinity(); }
};

Format FormatOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return {32, 8};
    case DataType::kFloat64:
      return {64, 11};
    case DataType::kBFloat16:
      return {16, 8};
    case DataType::kFloat16:
      return {16, 5};
    case DataType::kInt32:
      return {32, 0};
    case DataType::kInt64:
      return {64, 0};
  }
  return {};
}

// A random value: a quarter are special values, a quarter arbitrary bits, the rest near one (integers: small).
uint64_t AnyValue(const Format& format, std::mt19937_64& random) {
  const uint64_t bits = random();
  const uint64_t sign = (bits & 1) << (format.bits - 1);
  const uint64_t infinity = format.Infinity();
  const uint64_t highest = (uint64_t{1} << (format.bits - 1)) - 1;
  const uint64_t fraction_mask = (uint64_t{1} << format.FractionBits()) - 1;
  switch ((bits >> 1) % 4) {
    case 0: {
      const uint64_t specials[] = {0, 1, fraction_mask, fraction_mask + 1, infinity - 1, infinity, highest};
      return sign | specials[(bits >> 8) % 7];
    }
    case 1:
      return random();
    default:
      if (format.exponent_bits == 0) return (bits >> 8) % 2001 - 1000;
      const uint64_t bias = (uint64_t{1} << (format.exponent_bits - 1)) - 1;
      return sign | (bias - 5 + (bits >> 8) % 10) << format.FractionBits() | (random() & fraction_mask);
  }
}

// A buffer of values that starts one value behind an aligned address, so that no vector is aligned. Guard bytes on both
// sides must stay unchanged.
class Buffer {
 public:
  Buffer(DataType type, uint64_t values)
      : value_size_(SizeOf(type)), values_(values), memory_(values * value_size_ + 3 * kLine, '\x5A') {}

  char* data() { return memory_.data() + kLine + value_size_; }
  uint64_t At(uint64_t i) {
    uint64_t bits = 0;
    // Right because the machines we run on are little endian.
    std::memcpy(&bits, data() + i * value_size_, value_size_);
    return bits;
  }
  void Set(uint64_t i, uint64_t bits) { std::memcpy(data() + i * value_size_, &bits, value_size_); }
  bool EdgesAreIntact() {
    for (const char* byte = memory_.data(); byte != memory_.data() + memory_.size(); ++byte) {
      if (byte == data()) byte += values_ * value_size_;
      if (*byte != '\x5A') return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kLine = 64;
  uint64_t value_size_;
  uint64_t values_;
  std::string memory_;
};

std::vector<Buffer> AnySources(DataType type, uint64_t values) {
  std::mt19937_64 random(values);
  std::vector<Buffer> sources(kMostSources, Buffer(type, values));
  for (Buffer& source : sources) {
    for (uint64_t i = 0; i < values; ++i) source.Set(i, AnyValue(FormatOf(type), random));
  }
  return sources;
}

// Does what Reduce() does, with the given variant.
void ReduceWith(const ReduceVariant& variant, const Reduction& reduction, absl::Span<const char* const> sources,
                absl::Span<char* const> destinations, uint64_t values) {
  variant.reduce[static_cast<int>(reduction.type)][static_cast<int>(reduction.op)](
      sources.data(), sources.size(), destinations.data(), destinations.size(), values, reduction.mean_of);
}

// Describes the first value that differs; empty if none does. All NaNs count as equal.
std::string Difference(DataType type, Buffer& got, Buffer& want, uint64_t values) {
  const Format format = FormatOf(type);
  for (uint64_t i = 0; i < values; ++i) {
    if (got.At(i) == want.At(i) || (format.IsNan(got.At(i)) && format.IsNan(want.At(i)))) continue;
    return absl::StrFormat("value %d of %d is %x and not %x", i, values, got.At(i), want.At(i));
  }
  return got.EdgesAreIntact() ? "" : "bytes beside the values were written";
}

enum class Into { kAllSources, kFirstSource, kElsewhere };

void ExpectAsReference(const ReduceVariant& variant, const Reduction& reduction, int source_count, Into into,
                       uint64_t values, std::vector<Buffer> inputs, Buffer& want) {
  std::vector<Buffer> elsewhere(3, Buffer(reduction.type, values));
  std::vector<const char*> sources;
  std::vector<char*> destinations;
  std::vector<Buffer*> written;
  sources.reserve(source_count);
  written.reserve(inputs.size() + elsewhere.size());
  for (int i = 0; i < source_count; ++i) sources.push_back(inputs[i].data());
  if (into == Into::kAllSources) {
    for (int i = 0; i < source_count; ++i) written.push_back(&inputs[i]);
  } else if (into == Into::kFirstSource) {
    written.push_back(&inputs[0]);
  } else {
    for (Buffer& buffer : elsewhere) written.push_back(&buffer);
  }
  destinations.reserve(written.size());
  for (Buffer* buffer : written) destinations.push_back(buffer->data());
  ReduceWith(variant, reduction, sources, destinations, values);
  for (Buffer* buffer : written) {
    ASSERT_EQ(Difference(reduction.type, *buffer, want, values), "")
        << variant.name << ", " << NameOf(reduction.type) << " " << NameOf(reduction.op) << " of " << source_count
        << " sources, in place " << static_cast<int>(into);
  }
}

// Every kernel of every variant gives bitwise the result of the plain loop and writes nothing else. Cases have any
// number of sources, in place or not, of any size and alignment.
TEST(ReduceTest, VariantsEqualReference) {
  for (DataType type : kTypes) {
    for (uint64_t values : kSizes) {
      std::vector<Buffer> inputs = AnySources(type, values);
      for (ReduceOp op : kOps) {
        for (int n = 1; n <= kMostSources; ++n) {
          const Reduction reduction = {type, op, n};
          Buffer want(type, values);
          std::vector<const char*> sources;
          sources.reserve(n);
          for (int i = 0; i < n; ++i) sources.push_back(inputs[i].data());
          char* const destinations[] = {want.data()};
          ReferenceReduce(reduction, sources, destinations, values);
          for (const ReduceVariant* variant : SupportedReduceVariants()) {
            for (Into into : {Into::kAllSources, Into::kFirstSource, Into::kElsewhere}) {
              ExpectAsReference(*variant, reduction, n, into, values, inputs, want);
            }
          }
        }
      }
    }
  }
}

// One reduction of two values. It is tried in every variant, at each place of a vector and in a tail.
struct PairCase {
  const char* what;
  Reduction reduction;
  uint64_t a;
  uint64_t b;
  uint64_t want;
};

// Edge cases, whose expected results are written as bits rather than taken from the reference.
TEST(ReduceTest, Edges) {
  constexpr DataType kF32 = DataType::kFloat32, kF64 = DataType::kFloat64, kBf16 = DataType::kBFloat16;
  constexpr DataType kF16 = DataType::kFloat16, kI32 = DataType::kInt32, kI64 = DataType::kInt64;
  constexpr ReduceOp kSum = ReduceOp::kSum, kMean = ReduceOp::kMean, kMin = ReduceOp::kMin, kMax = ReduceOp::kMax;
  const PairCase cases[] = {
      {"int32 wraps around", {kI32, kSum}, 0x7FFFFFFF, 1, 0x80000000},
      {"int64 wraps around", {kI64, kSum}, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF},
      {"int32 mean of -7 and 0 is -3", {kI32, kMean, 2}, 0xFFFFFFF9, 0, 0xFFFFFFFD},
      {"int64 mean of 7 and 0 is 3", {kI64, kMean, 2}, 7, 0, 3},
      {"int32 minimum is signed", {kI32, kMin}, 0xFFFFFFFF, 1, 0xFFFFFFFF},
      {"int64 maximum is signed", {kI64, kMax}, 0xFFFFFFFFFFFFFFFF, 1, 1},
      {"float32 denormals are summed", {kF32, kSum}, 1, 2, 3},
      {"float64 denormals are summed", {kF64, kSum}, 1, 2, 3},
      {"float32 infinity stays", {kF32, kSum}, 0x7F800000, 0x3F800000, 0x7F800000},
      {"float32 mean", {kF32, kMean, 2}, 0x3F800000, 0x40400000, 0x40000000},
      {"float16 overflows to infinity", {kF16, kSum}, 0x7BFF, 0x7BFF, 0x7C00},
      {"float16 mean does not overflow", {kF16, kMean, 2}, 0x7BFF, 0x7BFF, 0x7BFF},
      {"float16 1 + 2^-11 ties to even, down", {kF16, kSum}, 0x3C00, 0x1000, 0x3C00},
      {"float16 1 + 2^-10 + 2^-11 ties to even, up", {kF16, kSum}, 0x3C01, 0x1000, 0x3C02},
      {"float16 denormals are summed to a normal", {kF16, kSum}, 0x03FF, 0x0001, 0x0400},
      {"float16 denormals' mean ties to even", {kF16, kMean, 2}, 0x0002, 0x0001, 0x0002},
      {"bfloat16 1 + 2^-8 ties to even, down", {kBf16, kSum}, 0x3F80, 0x3B80, 0x3F80},
      {"bfloat16 1 + 2^-7 + 2^-8 ties to even, up", {kBf16, kSum}, 0x3F81, 0x3B80, 0x3F82},
      {"bfloat16 overflows to infinity", {kBf16, kSum}, 0x7F7F, 0x7F7F, 0x7F80},
  };
  constexpr uint64_t kValues = 83;
  for (const ReduceVariant* variant : SupportedReduceVariants()) {
    for (const PairCase& test : cases) {
      Buffer a(test.reduction.type, kValues), b(test.reduction.type, kValues);
      for (uint64_t i = 0; i < kValues; ++i) a.Set(i, test.a), b.Set(i, test.b);
      const char* const sources[] = {a.data(), b.data()};
      char* const destinations[] = {a.data(), b.data()};
      ReduceWith(*variant, test.reduction, sources, destinations, kValues);
      for (uint64_t i = 0; i < kValues; ++i) {
        ASSERT_EQ(a.At(i), test.want) << variant->name << ": " << test.what << ", value " << i;
        ASSERT_EQ(b.At(i), test.want) << variant->name << ": " << test.what << ", value " << i;
      }
    }
  }
}

// A NaN in any source makes the minimum and the maximum NaN.
TEST(ReduceTest, MinAndMaxKeepNan) {
  for (DataType type : {DataType::kFloat32, DataType::kFloat64, DataType::kBFloat16, DataType::kFloat16}) {
    const Format format = FormatOf(type);
    constexpr uint64_t kValues = 67;
    for (const ReduceVariant* variant : SupportedReduceVariants()) {
      for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
        for (int nan = 0; nan < 3; ++nan) {
          std::vector<Buffer> buffers(3, Buffer(type, kValues));
          std::vector<const char*> sources;
          sources.reserve(buffers.size());
          for (int s = 0; s < 3; ++s) {
            for (uint64_t i = 0; i < kValues; ++i) buffers[s].Set(i, s == nan ? format.Infinity() + 1 : s);
            sources.push_back(buffers[s].data());
          }
          char* const destinations[] = {buffers[0].data()};
          ReduceWith(*variant, {type, op}, sources, destinations, kValues);
          for (uint64_t i = 0; i < kValues; ++i) {
            ASSERT_TRUE(format.IsNan(buffers[0].At(i))) << variant->name << " " << NameOf(type) << " " << NameOf(op);
          }
        }
      }
    }
  }
}

// Reduce() without a divisor only sums, and FinishReduction() divides. A destination may be one of the sources.
TEST(ReduceTest, PublicFunctions) {
  std::vector<float> into = {1, 2, 3};
  const std::vector<float> from = {3, 4, 8};
  const absl::Span<char> into_bytes(reinterpret_cast<char*>(into.data()), 12);
  const char* const sources[] = {into_bytes.data(), reinterpret_cast<const char*>(from.data())};
  char* const destinations[] = {into_bytes.data()};
  Reduce({DataType::kFloat32, ReduceOp::kMean}, sources, destinations, into.size());
  EXPECT_THAT(into, ElementsAre(4, 6, 11));
  FinishReduction(DataType::kFloat32, ReduceOp::kMean, 2, into_bytes);
  EXPECT_THAT(into, ElementsAre(2, 3, 5.5));
  FinishReduction(DataType::kFloat32, ReduceOp::kSum, 2, into_bytes);
  EXPECT_THAT(into, ElementsAre(2, 3, 5.5));
}

// In every variant wide sums of 16-bit values are bitwise those of the plain loop, and nothing beside them is written.
TEST(ReduceTest, WideSumsEqualReference) {
  for (DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    for (uint64_t values : kSizes) {
      std::vector<Buffer> inputs = AnySources(type, values);
      std::vector<const char*> sources;
      sources.reserve(inputs.size());
      for (Buffer& input : inputs) {
        sources.push_back(input.data());
        Buffer want(DataType::kFloat32, values);
        ReferenceReduceWide(type, sources, {reinterpret_cast<float*>(want.data()), values});
        for (const ReduceVariant* variant : SupportedReduceVariants()) {
          Buffer got(DataType::kFloat32, values);
          char* const destination = got.data();
          (type == DataType::kBFloat16 ? variant->wide_sum_bfloat16 : variant->wide_sum_float16)(
              sources.data(), sources.size(), &destination, 1, values, 0);
          ASSERT_EQ(Difference(DataType::kFloat32, got, want, values), "")
              << variant->name << ", " << NameOf(type) << " of " << sources.size() << " sources";
        }
      }
    }
  }
}

// Wide sums keep what 16 bits cannot hold: there 2048 is followed by 2050, and 256 by 258.
TEST(ReduceTest, WideSumsAreNotRounded) {
  const struct {
    DataType type;
    uint16_t big;
    uint16_t one;
    float sum;
  } kCases[] = {{DataType::kFloat16, 0x6800, 0x3C00, 2051}, {DataType::kBFloat16, 0x4380, 0x3F80, 259}};
  for (const auto& test : kCases) {
    const std::vector<uint16_t> big(21, test.big), ones(21, test.one);
    const auto* const big_bytes = reinterpret_cast<const char*>(big.data());
    const auto* const one_bytes = reinterpret_cast<const char*>(ones.data());
    std::vector<float> sums(21);
    ReduceWide(test.type, {big_bytes, one_bytes, one_bytes, one_bytes}, absl::MakeSpan(sums));
    EXPECT_THAT(sums, testing::Each(test.sum)) << NameOf(test.type);
  }
}

using WidenKernel = ReduceVariant::WidenKernel;

WidenKernel WidenOf(const ReduceVariant& variant, DataType type) {
  return type == DataType::kBFloat16 ? variant.widen_bfloat16 : variant.widen_float16;
}
WidenKernel NarrowOf(const ReduceVariant& variant, DataType type) {
  return type == DataType::kBFloat16 ? variant.narrow_bfloat16 : variant.narrow_float16;
}

// All 65536 16-bit values are widened as the reference does it, and narrowing gives them back.
TEST(ConversionTest, EveryValueWidensAndComesBack) {
  constexpr uint64_t kValues = 65536;
  for (DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    Buffer stored(type, kValues), want(DataType::kFloat32, kValues);
    for (uint64_t i = 0; i < kValues; ++i) stored.Set(i, i);
    ReferenceWiden(type, {stored.data(), kValues * 2}, {reinterpret_cast<float*>(want.data()), kValues});
    for (const ReduceVariant* variant : SupportedReduceVariants()) {
      Buffer wide(DataType::kFloat32, kValues), back(type, kValues);
      WidenOf(*variant, type)(stored.data(), wide.data(), kValues);
      EXPECT_EQ(Difference(DataType::kFloat32, wide, want, kValues), "") << variant->name << " " << NameOf(type);
      NarrowOf(*variant, type)(wide.data(), back.data(), kValues);
      EXPECT_EQ(Difference(type, back, stored, kValues), "") << variant->name << " " << NameOf(type);
    }
  }
}

// Floats are rounded as the reference does it: every sign, exponent and upper fraction, with lower fractions at and
// around the ties of both types.
TEST(ConversionTest, EveryRoundingEqualsReference) {
  constexpr uint64_t kValues = 65536;
  for (uint32_t low : {0x0000u, 0x0001u, 0x0FFFu, 0x1000u, 0x1001u, 0x2FFFu, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u,
                       0xEFFFu, 0xF000u, 0xF001u, 0xFFFFu}) {
    Buffer floats(DataType::kFloat32, kValues);
    for (uint64_t i = 0; i < kValues; ++i) floats.Set(i, i << 16 | low);
    for (DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
      Buffer want(type, kValues);
      ReferenceNarrow(type, {reinterpret_cast<const float*>(floats.data()), kValues}, {want.data(), kValues * 2});
      for (const ReduceVariant* variant : SupportedReduceVariants()) {
        Buffer got(type, kValues);
        NarrowOf(*variant, type)(floats.data(), got.data(), kValues);
        EXPECT_EQ(Difference(type, got, want, kValues), "") << variant->name << " " << NameOf(type) << " low " << low;
      }
    }
  }
}

// The public conversions work for sizes that are not a multiple of a vector.
TEST(ConversionTest, PublicFunctions) {
  for (DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    std::vector<float> floats(19), back(19);
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i) - 9.5f;
    std::string narrow(floats.size() * 2, '\0');
    Narrow(type, floats, absl::MakeSpan(&narrow[0], narrow.size()));
    Widen(type, narrow, absl::MakeSpan(back));
    EXPECT_EQ(back, floats) << NameOf(type);
  }
}

// The last variant is the baseline, which runs on any machine. Every variant has a name.
TEST(DispatchTest, BaselineIsAlwaysThere) {
  ASSERT_FALSE(SupportedReduceVariants().empty());
  EXPECT_EQ(SupportedReduceVariants().back(), &kReduceBaseline);
  for (const ReduceVariant* variant : SupportedReduceVariants()) EXPECT_STRNE(variant->name, "");
}

}  // namespace
}  // namespace hooke
