#ifndef HOOKE_WIRE_FRAME_H_
#define HOOKE_WIRE_FRAME_H_

// The messages of the streams that carry tensors, ParameterServer.Exchange and Initialize. Each is a fixed
// little-endian header and the values behind it, no Protocol Buffers. docs/wire.md defines the format; only this file
// implements it. Pure. wire/frame_buffer.h puts the same messages into gRPC's memory.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// The first byte of a message.
enum class FrameKind : uint8_t {
  kOpening = 1,  // Says who sends; the first message of a stream, once.
  kValues = 2,   // Values of consecutive blocks, or the answer to them.
  // A server's refusal, its last message. Only on connections without gRPC; gRPC has statuses of its own.
  kRefusal = 3,
};

// The encoding of values (algorithms/compression.h does the work). Other numbers are refused.
enum class WireType : uint8_t { kFloat32 = 1, kFloat16 = 2, kBFloat16 = 3, kInt8 = 4, kInt4 = 5, kTopK = 6 };
inline constexpr uint8_t kWireTypeMax = 6;

// The name, like "float16", and the form in texts of refusals, like "2 (float16)".
const char* WireTypeName(WireType type);
std::string WireTypeText(WireType type);

inline constexpr uint8_t kWireVersion = 2;
inline constexpr size_t kJobIdBytesMax = 100;
inline constexpr size_t kJobKeyBytesMax = 255;
inline constexpr size_t kOpeningHeaderBytes = 16;                  // The job id and the job key follow.
inline constexpr size_t kValuesHeaderBytes = 24;                   // The values follow.
inline constexpr size_t kRefusalHeaderBytes = kValuesHeaderBytes;  // The text follows.
inline constexpr uint64_t kFrameValuesMax = 0xffffffff;

struct ValuesHeader {
  uint64_t sequence = 0;  // Sequence of the exchange, >= 1; 0 in Initialize.
  uint64_t first = 0;     // Index of the first value in the whole vector.
  uint64_t values = 0;    // Number of values, 1 to kFrameValuesMax.
  WireType type = WireType::kFloat32;
  uint16_t top_k = 0;  // kTopK: values kept of each run of 16384, 1 to 16384. Other types: 0.
};

// The bytes of the message behind its header.
uint64_t PayloadBytes(const ValuesHeader& header);

// The kind of a client's message or of an answer. `start` is all or some of its first bytes, at least one.
// INVALID_ARGUMENT if it is neither an opening nor values.
absl::StatusOr<FrameKind> ReadKind(absl::string_view start);

// `sender.job_id` and `sender.job_key` may have at most 255 bytes each.
std::string EncodeOpening(const v1::Sender& sender);
// `message` is the whole opening. INVALID_ARGUMENT if it is too short, has another version, or announces another length
// of the job id or key. The sender's numbers are not checked.
absl::StatusOr<v1::Sender> DecodeOpening(absl::string_view message);

// The bytes of an opening that follow its first kOpeningHeaderBytes, which `message` begins with. INVALID_ARGUMENT: too
// short, no opening, another version, or a job id longer than kJobIdBytesMax.
absl::StatusOr<size_t> OpeningTailBytes(absl::string_view message);

// Writes the header into the first kValuesHeaderBytes of `message`.
void EncodeValuesHeader(const ValuesHeader& header, absl::Span<char> message);
// `start` is the first kValuesHeaderBytes of a message, or all of a shorter one. `message_bytes` is the message's
// length if it is known apart from the header, as in gRPC. INVALID_ARGUMENT if the message is too short, of an unknown
// type, or not as long as announced. After OK exactly PayloadBytes follow.
absl::StatusOr<ValuesHeader> DecodeValuesHeader(absl::string_view start, std::optional<uint64_t> message_bytes);

// Encodes a whole message; a text of more than 65535 bytes is cut.
std::string EncodeRefusal(const absl::Status& refusal);
bool IsRefusal(absl::string_view start);
// The bytes of text that follow the first kRefusalHeaderBytes; and the status that both make up. It is never OK: codes
// that gRPC does not have become INTERNAL.
size_t RefusalTextBytes(absl::string_view header);
absl::Status DecodeRefusal(absl::string_view header, absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_WIRE_FRAME_H_
