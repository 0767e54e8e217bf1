#include "worker/exchange/agreement.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpi_group/tensor_list.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

// A float holds integers up to 2^24: twelve bits, summed over up to 4096 ranks, stay exact.
constexpr int kDigitBits = 12;
constexpr int kDigits = 6;
constexpr size_t kMessageBytes = 1000;
constexpr size_t kAddressBytes = 300;  // Of the server for want of which it failed.

// At most `bytes_max` of `text`, at `place`: a length, then the characters.
void PutText(absl::string_view text, size_t bytes_max, float* place) {
  text = text.substr(0, bytes_max);
  place[0] = static_cast<float>(text.size());
  for (size_t i = 0; i < text.size(); ++i) place[i + 1] = static_cast<float>(static_cast<uint8_t>(text[i]));
}

std::string GetText(const float* place) {
  std::string text(static_cast<size_t>(place[0]), '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(static_cast<uint8_t>(place[i + 1]));
  return text;
}

std::vector<float> ToDigits(absl::Span<const uint64_t> numbers) {
  std::vector<float> digits;
  for (uint64_t number : numbers) {
    for (int i = 0; i < kDigits; ++i) {
      digits.push_back(static_cast<float>(number & ((1u << kDigitBits) - 1)));
      number >>= kDigitBits;
    }
  }
  return digits;
}

void FromDigits(absl::Span<const float> digits, absl::Span<uint64_t> numbers) {
  for (size_t n = 0; n < numbers.size(); ++n) {
    numbers[n] = 0;
    for (int i = kDigits - 1; i >= 0; --i) {
      numbers[n] = (numbers[n] << kDigitBits) + static_cast<uint64_t>(digits[n * kDigits + i]);
    }
  }
}

}  // namespace

absl::Status BroadcastNumbers(Group& group, absl::Span<uint64_t> numbers) {
  std::vector<float> digits = ToDigits(numbers);
  if (absl::Status status = group.Broadcast(TensorList(absl::MakeSpan(digits)), 0); !status.ok()) return status;
  FromDigits(digits, numbers);
  return absl::OkStatus();
}

absl::Status SumNumbers(Group& group, absl::Span<uint64_t> numbers) {
  std::vector<float> digits = ToDigits(numbers);
  absl::Status status = group.AllReduce(TensorList(absl::MakeSpan(digits)), ReduceOp::kSum);
  if (!status.ok()) return status;
  FromDigits(digits, numbers);
  return absl::OkStatus();
}

absl::Status BroadcastOutcome(Group& group, absl::Status& outcome, int root) {
  constexpr size_t kMessage = 1;
  constexpr size_t kAddress = kMessage + 1 + kMessageBytes;
  std::vector<float> values(kAddress + 1 + kAddressBytes, 0.0f);
  values[0] = static_cast<float>(outcome.code());
  PutText(outcome.message(), kMessageBytes, &values[kMessage]);
  PutText(WantedServer(outcome), kAddressBytes, &values[kAddress]);
  if (absl::Status status = group.Broadcast(TensorList(absl::MakeSpan(values)), root); !status.ok()) return status;
  if (group.rank() == root) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(static_cast<int>(values[0]));
  outcome = ForWantOf(GetText(&values[kAddress]), absl::Status(code, GetText(&values[kMessage])));
  return absl::OkStatus();
}

absl::Status AgreeOnOutcome(Group& group, absl::Status& outcome) {
  std::vector<uint64_t> failed(group.size(), 0);
  failed[group.rank()] = outcome.ok() ? 0 : 1;
  if (absl::Status status = SumNumbers(group, absl::MakeSpan(failed)); !status.ok()) return status;
  const auto first = std::find(failed.begin(), failed.end(), uint64_t{1});
  if (first == failed.end()) return absl::OkStatus();
  return BroadcastOutcome(group, outcome, static_cast<int>(first - failed.begin()));
}

}  // namespace hooke
