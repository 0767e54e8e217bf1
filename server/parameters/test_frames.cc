#include "server/parameters/test_frames.h"

#include "wire/frame_buffer.h"

namespace hooke {

grpc::ByteBuffer Message(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

grpc::ByteBuffer OpeningMessage(const v1::Sender& sender) { return Message(EncodeOpening(sender)); }

grpc::ByteBuffer ValuesMessage(ValuesHeader header, absl::Span<const float> values) {
  header.values = values.size();
  std::string bytes(kValuesHeaderBytes, '\0');
  EncodeValuesHeader(header, absl::MakeSpan(&bytes[0], bytes.size()));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return Message(bytes);
}

absl::StatusOr<ReceivedValues> ReadValues(const grpc::ByteBuffer& message) {
  absl::StatusOr<IncomingFrame> frame = IncomingFrame::Parse(message);
  if (!frame.ok()) return frame.status();
  absl::StatusOr<ValuesHeader> header = frame->Header();
  if (!header.ok()) return header.status();
  ReceivedValues received = {*header, std::vector<float>(header->values)};
  frame->CopyValues(absl::MakeSpan(received.values));
  return received;
}

}  // namespace hooke
