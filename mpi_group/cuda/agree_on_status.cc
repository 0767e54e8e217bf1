#include "mpi_group/cuda/agree_on_status.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace hooke {
namespace {

// A status as it is broadcast: its code, and the first words of its message, with zeros behind them.
struct Words {
  static constexpr size_t kText = 512;

  int32_t code = 0;
  char text[kText] = {};
};

}  // namespace

absl::Status AgreeOnStatus(Group& group, const absl::Status& own) {
  int32_t failed[] = {own.ok() ? -1 : group.rank()};
  absl::Status status = group.AllReduce(TensorList(absl::MakeSpan(failed)), ReduceOp::kMax);
  if (status.ok() && failed[0] < 0) return absl::OkStatus();
  Words words;
  if (status.ok()) {
    words.code = static_cast<int32_t>(own.code());
    std::memcpy(words.text, own.message().data(), std::min(own.message().size(), Words::kText - 1));
    int32_t sent[sizeof(words) / sizeof(int32_t)];
    std::memcpy(sent, &words, sizeof(words));
    status = group.Broadcast(TensorList(absl::MakeSpan(sent)), failed[0]);
    std::memcpy(&words, sent, sizeof(words));
  }
  if (!own.ok()) return own;
  if (!status.ok()) return status;
  return absl::Status(static_cast<absl::StatusCode>(words.code), absl::StrCat("rank ", failed[0], ": ", words.text));
}

}  // namespace hooke
