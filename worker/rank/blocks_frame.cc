#include "worker/rank/blocks_frame.h"

#include "absl/strings/str_cat.h"
#include "algorithms/compression.h"

namespace hooke {

ValuesHeader HeaderOf(const BlocksToSend& blocks) {
  return {blocks.sequence, blocks.first, blocks.values.size(), static_cast<WireType>(blocks.encoding.compression),
          blocks.encoding.top_k};
}

absl::Span<const char> PayloadOf(const BlocksToSend& blocks) {
  if (blocks.encoding.compression != Compression::kNone) return blocks.encoded;
  return {reinterpret_cast<const char*>(blocks.values.data()), blocks.values.size() * sizeof(float)};
}

absl::Span<char> RoomFor(const ValuesHeader& header, std::vector<char>& encoded, AnsweredBlocks* answer) {
  answer->sequence = header.sequence;
  answer->first = header.first;
  answer->values.resize(header.values);
  if (header.type == WireType::kFloat32) {
    return {reinterpret_cast<char*>(answer->values.data()), header.values * sizeof(float)};
  }
  encoded.resize(PayloadBytes(header));
  return absl::MakeSpan(encoded);
}

absl::Status DecodeAnswer(const ValuesHeader& header, absl::Span<const char> payload, AnsweredBlocks* answer) {
  if (header.type == WireType::kFloat32) return absl::OkStatus();
  const Encoding encoding = {static_cast<Compression>(header.type), header.top_k};
  absl::Status status = Decode(encoding, payload, absl::MakeSpan(answer->values));
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("an answer of type ", WireTypeText(header.type), " cannot be decoded: ", status.message()));
}

}  // namespace hooke
