#include "worker/rank/group_dataset.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "worker/exchange/agreement.h"
#include "worker/training/rank_zero.h"

namespace hooke {
namespace {

// Bytes in one broadcast. A large set takes several, and each of them has the whole deadline.
constexpr size_t kPieceBytes = size_t{64} << 20;

// All ranks end with rank 0's bytes; the vectors have the same size.
absl::Status BroadcastBytes(Group& group, std::vector<uint8_t>& bytes) {
  // Collectives have no byte type, so bytes travel as int32. Up to three bytes at the end, which fill no int32, travel
  // as a number.
  const size_t whole = bytes.size() / sizeof(int32_t) * sizeof(int32_t);
  for (size_t at = 0; at < whole; at += kPieceBytes) {
    const absl::Span<char> piece(reinterpret_cast<char*>(bytes.data()) + at, std::min(kPieceBytes, whole - at));
    absl::Status status = group.Broadcast(TensorList(DataType::kInt32, piece), 0);
    if (!status.ok()) return status;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data() + whole, bytes.size() - whole);
  absl::Status status = BroadcastNumbers(group, absl::MakeSpan(&rest, 1));
  std::memcpy(bytes.data() + whole, &rest, bytes.size() - whole);
  return status;
}

// Broadcasts everything of a set except its pixels and labels, and makes room for these.
absl::Status BroadcastShape(Group& group, IdxContent& content) {
  std::array<uint64_t, 5> numbers = {content.labels.size(), content.rows, content.columns,
                                     absl::bit_cast<uint64_t>(content.normalization.mean),
                                     absl::bit_cast<uint64_t>(content.normalization.deviation)};
  if (absl::Status status = BroadcastNumbers(group, absl::MakeSpan(numbers)); !status.ok()) return status;
  content.rows = static_cast<uint32_t>(numbers[1]);
  content.columns = static_cast<uint32_t>(numbers[2]);
  content.normalization = {absl::bit_cast<double>(numbers[3]), absl::bit_cast<double>(numbers[4])};
  content.labels.resize(numbers[0]);
  content.pixels.resize(numbers[0] * numbers[1] * numbers[2]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<IdxDataset> LoadInGroup(Group& group, const IdxOptions& options, absl::Duration collective_timeout) {
  IdxContent content;
  RankZeroCall call;
  call.timeout = absl::ZeroDuration();  // One attempt, because no error of Load goes away.
  call.collective_timeout = collective_timeout;
  RankZeroWork work;
  work.attempt = [&content, &options](absl::Time) {
    absl::StatusOr<IdxDataset> loaded = IdxDataset::Load(options);
    if (loaded.ok()) content = std::move(*loaded).Take();
    return loaded.status();
  };
  if (absl::Status status = InRankZero(group, call, work); !status.ok()) return status;
  if (group.size() == 1) return IdxDataset(std::move(content));
  if (absl::Status status = BroadcastShape(group, content); !status.ok()) return status;
  for (std::vector<uint8_t>* bytes : {&content.pixels, &content.labels}) {
    if (absl::Status status = BroadcastBytes(group, *bytes); !status.ok()) return status;
  }
  return IdxDataset(std::move(content));
}

}  // namespace hooke
