#include "worker/exchange/blocks_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "algorithms/finite.h"

namespace hooke {
namespace {

absl::Status CheckAnswer(const ValuesHeader& header, const ExpectedAnswer& expected) {
  if (header.values > expected.values_max) {
    return absl::InternalError(absl::StrCat("an answer of ", header.values, " values; no message with more than ",
                                            expected.values_max,
                                            " was sent, and an answer is as long as what it answers"));
  }
  const auto type = static_cast<WireType>(expected.encoding.compression);
  if (header.type == type && header.top_k == expected.encoding.top_k) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("an answer of type ", WireTypeText(header.type), ", k ", header.top_k,
                                          "; by the job's averaging.compression and rule it is ", WireTypeText(type),
                                          ", k ", expected.encoding.top_k));
}

}  // namespace

ValuesHeader HeaderOf(const BlocksToSend& blocks) {
  return {blocks.sequence, blocks.first, blocks.values.size(), static_cast<WireType>(blocks.encoding.compression),
          blocks.encoding.top_k};
}

absl::Span<const char> PayloadOf(const BlocksToSend& blocks) {
  if (blocks.encoding.compression != Compression::kNone) return blocks.encoded;
  return {reinterpret_cast<const char*>(blocks.values.data()), blocks.values.size() * sizeof(float)};
}

void SentMessages::Note(const BlocksToSend& blocks) {
  absl::MutexLock lock(&mutex_);
  expected_.values_max = std::max<uint64_t>(expected_.values_max, blocks.values.size());
  expected_.encoding = blocks.answered;
}

ExpectedAnswer SentMessages::Expected() const {
  absl::MutexLock lock(&mutex_);
  return expected_;
}

absl::StatusOr<absl::Span<char>> RoomFor(const ValuesHeader& header, const ExpectedAnswer& expected,
                                         std::vector<char>& encoded, AnsweredBlocks* answer) {
  if (absl::Status status = CheckAnswer(header, expected); !status.ok()) return status;
  answer->sequence = header.sequence;
  answer->first = header.first;
  answer->values.resize(header.values);
  if (header.type == WireType::kFloat32) {
    return absl::Span<char>(reinterpret_cast<char*>(answer->values.data()), header.values * sizeof(float));
  }
  encoded.resize(PayloadBytes(header));
  return absl::MakeSpan(encoded);
}

absl::Status DecodeAnswer(const ValuesHeader& header, absl::Span<const char> payload, AnsweredBlocks* answer) {
  if (header.type == WireType::kFloat32) {
    if (AllFinite(answer->values)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("an answer of ", header.values, " values from value ", header.first,
                                            " on has one that is not finite"));
  }
  const Encoding encoding = {static_cast<Compression>(header.type), header.top_k};
  absl::Status status = Decode(encoding, payload, absl::MakeSpan(answer->values));
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("an answer of type ", WireTypeText(header.type), " cannot be decoded: ", status.message()));
}

}  // namespace hooke
