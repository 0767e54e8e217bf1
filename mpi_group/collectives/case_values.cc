#include "mpi_group/collectives/case_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpi_group/reduce/reduce.h"

namespace hooke {
namespace {

constexpr uint64_t kPeriod = 1009;
constexpr char kUntouched = 0x5A;

bool IsInteger(DataType type) { return type == DataType::kInt32 || type == DataType::kInt64; }

int64_t Whole(int rank, uint64_t place) {
  return static_cast<int64_t>((static_cast<uint64_t>(rank) * 7919 + place * 104729) % kPeriod) - 504;
}

// The smallest whole number n for which the type cannot hold n + 1. n + 1 is halfway to the type's next value, n + 2,
// and is rounded back to n, which is even.
double LargeNumber(DataType type) { return type == DataType::kBFloat16 ? 256 : 2048; }

double Floating(DataType type, Numbers numbers, int rank, uint64_t place) {
  constexpr uint64_t kTurns = 8;
  switch (numbers) {
    case Numbers::kWhole:
      break;
    case Numbers::kFractions:
      return static_cast<double>(Whole(rank, place)) / 53;
    case Numbers::kOneLarge:
      return static_cast<uint64_t>(rank) % kTurns == place % kTurns ? LargeNumber(type) : 1;
  }
  return static_cast<double>(Whole(rank, place));
}

// ---- Reads and writes one value of any type, as double or int64.

template <typename T>
void Put(T value, char* to) {
  std::memcpy(to, &value, sizeof(value));
}
template <typename T>
T Get(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

void PutFloat(DataType type, double value, char* to) {
  if (type == DataType::kFloat64) return Put(value, to);
  const auto single = static_cast<float>(value);
  if (type == DataType::kFloat32) return Put(single, to);
  Narrow(type, absl::MakeConstSpan(&single, 1), {to, SizeOf(type)});
}

double GetFloat(DataType type, const char* from) {
  if (type == DataType::kFloat64) return Get<double>(from);
  if (type == DataType::kFloat32) return Get<float>(from);
  float single = 0;
  Widen(type, {from, SizeOf(type)}, absl::MakeSpan(&single, 1));
  return single;
}

void PutInteger(DataType type, int64_t value, char* to) {
  return type == DataType::kInt64 ? Put(value, to) : Put(static_cast<int32_t>(value), to);
}
int64_t GetInteger(DataType type, const char* from) {
  return type == DataType::kInt64 ? Get<int64_t>(from) : Get<int32_t>(from);
}

// ---- Reduces the values that all ranks have at one place, in the obvious way.

double ReduceFloats(DataType type, ReduceOp op, absl::Span<const double> inputs) {
  double result = inputs[0];
  for (double input : inputs.subspan(1)) {
    if (op == ReduceOp::kMin) {
      result = std::min(result, input);
    } else if (op == ReduceOp::kMax) {
      result = std::max(result, input);
    } else {
      result = SizeOf(type) == 2 ? static_cast<float>(result + input) : result + input;
    }
  }
  if (op != ReduceOp::kMean) return result;
  const auto ranks = static_cast<double>(inputs.size());
  return SizeOf(type) == 2 ? static_cast<float>(result) / static_cast<float>(ranks) : result / ranks;
}

int64_t ReduceIntegers(DataType type, ReduceOp op, absl::Span<const int64_t> inputs) {
  if (op == ReduceOp::kMin) return *std::min_element(inputs.begin(), inputs.end());
  if (op == ReduceOp::kMax) return *std::max_element(inputs.begin(), inputs.end());
  uint64_t sum = 0;
  for (int64_t input : inputs) sum += static_cast<uint64_t>(input);
  const int64_t wrapped = type == DataType::kInt64 ? static_cast<int64_t>(sum) : static_cast<int32_t>(sum);
  return op == ReduceOp::kMean ? wrapped / static_cast<int64_t>(inputs.size()) : wrapped;
}

// The error that another order of additions, or multiplication by the reciprocal for a mean, may cause in sums of up to
// a few tens. In 16 bits that may be one unit in the last place.
double Tolerance(DataType type, double wanted) {
  switch (type) {
    case DataType::kFloat64:
      return 1e-13 + std::abs(wanted) * 1e-15;
    case DataType::kBFloat16:
      return 1e-5 + std::abs(wanted) / 128;
    case DataType::kFloat16:
      return 1e-5 + std::abs(wanted) / 1024;
    default:
      return 5e-5 + std::abs(wanted) * 1e-6;
  }
}

Pattern MakeInput(DataType type, Numbers numbers, int rank) {
  Pattern pattern = {type, std::vector<char>(kPeriod * SizeOf(type))};
  for (uint64_t i = 0; i < kPeriod; ++i) {
    char* const to = pattern.bytes.data() + i * SizeOf(type);
    if (IsInteger(type)) {
      const int64_t whole = Whole(rank, i);
      PutInteger(type, i % 7 == 0 ? whole * (int64_t{1} << (8 * SizeOf(type) - 11)) : whole, to);
    } else {
      PutFloat(type, Floating(type, numbers, rank, i), to);
    }
  }
  return pattern;
}

Pattern MakeReduction(DataType type, Numbers numbers, ReduceOp op, int ranks) {
  Pattern pattern = {type, std::vector<char>(kPeriod * SizeOf(type))};
  std::vector<Pattern> inputs;
  inputs.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(MakeInput(type, numbers, rank));
  std::vector<double> floats(ranks);
  std::vector<int64_t> integers(ranks);
  for (uint64_t at = 0; at < pattern.bytes.size(); at += SizeOf(type)) {
    char* const to = pattern.bytes.data() + at;
    if (IsInteger(type)) {
      for (int rank = 0; rank < ranks; ++rank) integers[rank] = GetInteger(type, inputs[rank].bytes.data() + at);
      PutInteger(type, ReduceIntegers(type, op, integers), to);
    } else {
      for (int rank = 0; rank < ranks; ++rank) floats[rank] = GetFloat(type, inputs[rank].bytes.data() + at);
      PutFloat(type, ReduceFloats(type, op, floats), to);
    }
  }
  const bool rounded = op == ReduceOp::kMean || (op == ReduceOp::kSum && numbers == Numbers::kFractions);
  pattern.exact = IsInteger(type) || !rounded;
  return pattern;
}

class PatternStore {
 public:
  template <typename Make>
  const Pattern& Get(const std::array<int, 4>& key, const Make& make) {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<const Pattern>& pattern = patterns_[key];
    if (pattern == nullptr) pattern = std::make_unique<const Pattern>(make());
    return *pattern;
  }

 private:
  absl::Mutex mutex_;
  std::map<std::array<int, 4>, std::unique_ptr<const Pattern>> patterns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

double Pattern::At(uint64_t index) const {
  const char* const at = bytes.data() + index % kPeriod * SizeOf(type);
  return IsInteger(type) ? static_cast<double>(GetInteger(type, at)) : GetFloat(type, at);
}

const Pattern& InputOf(DataType type, Numbers numbers, int rank) {
  static PatternStore& store = *new PatternStore;
  return store.Get({static_cast<int>(type), static_cast<int>(numbers), 0, rank},
                   [&] { return MakeInput(type, numbers, rank); });
}

const Pattern& ReductionOf(DataType type, Numbers numbers, ReduceOp op, int ranks) {
  static PatternStore& store = *new PatternStore;
  return store.Get({static_cast<int>(type), static_cast<int>(numbers), static_cast<int>(op), ranks},
                   [&] { return MakeReduction(type, numbers, op, ranks); });
}

CaseList::CaseList(absl::Span<char> room, DataType type, uint64_t values, bool pieces) : room_(room) {
  std::fill(room.begin(), room.end(), kUntouched);
  std::vector<uint64_t> cuts = {0, values};
  if (pieces) cuts = {0, 0, values / 3, values / 3, values - values / 4, values};
  const uint64_t value_bytes = SizeOf(type);
  std::vector<absl::Span<char>> spans;
  uint64_t begin = 0;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    around_.push_back(room.subspan(begin, value_bytes));
    spans.push_back(room.subspan(begin + value_bytes, (cuts[i + 1] - cuts[i]) * value_bytes));
    begin += value_bytes + spans.back().size();
  }
  around_.push_back(room.subspan(begin));
  list_ = TensorList(type, spans);
}

void CaseList::Fill(const Pattern& pattern) {
  std::vector<char> bytes(list_.bytes());
  for (uint64_t at = 0; at < bytes.size(); at += pattern.bytes.size()) {
    std::copy_n(pattern.bytes.begin(), std::min(pattern.bytes.size(), bytes.size() - at), bytes.begin() + at);
  }
  Scatter(bytes, list_);
}

void CaseList::Expect(const Pattern& pattern, ValueRange range) const {
  const TensorList part = list_.Slice(range);
  Pattern got = {pattern.type, std::vector<char>(part.bytes())};
  Gather(part, absl::MakeSpan(got.bytes));
  const uint64_t value_bytes = SizeOf(pattern.type);
  for (uint64_t i = 0; i < part.size(); ++i) {
    const char* const wanted = pattern.bytes.data() + (range.begin + i) % kPeriod * value_bytes;
    const char* const found = got.bytes.data() + i * value_bytes;
    if (std::memcmp(wanted, found, value_bytes) == 0) continue;
    Pattern one = {pattern.type, {found, found + value_bytes}};
    const double expected = pattern.At(range.begin + i);
    if (!pattern.exact && std::abs(one.At(0) - expected) <= Tolerance(pattern.type, expected)) continue;
    FAIL() << one.At(0) << " at " << range.begin + i << " of " << list_.size() << " instead of " << expected;
  }
  ExpectUntouchedAround();
}

void CaseList::ExpectUntouchedAround() const {
  for (absl::Span<char> guard : around_) {
    const auto touched = std::find_if(guard.begin(), guard.end(), [](char byte) { return byte != kUntouched; });
    ASSERT_EQ(touched, guard.end()) << "memory outside of the list was written";
  }
}

int64_t CaseList::Hash() const {
  uint64_t hash = 0xCBF29CE484222325;
  for (absl::Span<char> piece : list_.pieces()) {
    for (char byte : piece) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  }
  return static_cast<int64_t>(hash);
}

}  // namespace hooke
