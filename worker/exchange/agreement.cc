#include "worker/exchange/agreement.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

// A text as it is broadcast. Longer texts are cut.
template <size_t kBytesMax>
struct SentText {
  uint64_t bytes = 0;
  std::array<char, kBytesMax> text = {};

  void Set(absl::string_view from) { bytes = from.copy(text.data(), kBytesMax); }
  std::string Get() const { return std::string(text.data(), std::min<uint64_t>(bytes, kBytesMax)); }
};

struct SentOutcome {
  int64_t code = 0;
  SentText<1000> message;
  // Address of the server whose absence caused the failure; empty if none did.
  SentText<304> server;
};
static_assert(sizeof(SentOutcome) % sizeof(int64_t) == 0, "it travels as whole numbers");

// Views the numbers as signed ones with the same bits, because collectives have only signed integers of 64 bits.
TensorList ListOf(absl::Span<uint64_t> numbers) {
  return TensorList(absl::MakeSpan(reinterpret_cast<int64_t*>(numbers.data()), numbers.size()));
}

}  // namespace

absl::Status BroadcastNumbers(Group& group, absl::Span<uint64_t> numbers) {
  return group.Broadcast(ListOf(numbers), 0);
}

absl::Status SumNumbers(Group& group, absl::Span<uint64_t> numbers) {
  return group.AllReduce(ListOf(numbers), ReduceOp::kSum);
}

absl::Status BroadcastOutcome(Group& group, absl::Status& outcome, int root) {
  SentOutcome sent;
  sent.code = static_cast<int64_t>(outcome.code());
  sent.message.Set(outcome.message());
  sent.server.Set(WantedServer(outcome));
  const absl::Span<char> bytes(reinterpret_cast<char*>(&sent), sizeof(sent));
  if (absl::Status status = group.Broadcast(TensorList(DataType::kInt64, bytes), root); !status.ok()) return status;
  if (group.rank() == root) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(sent.code);
  outcome = ForWantOf(sent.server.Get(), absl::Status(code, sent.message.Get()));
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
