#ifndef HOOKE_WIRE_FRAME_H_
#define HOOKE_WIRE_FRAME_H_

// The messages of the streams that carry tensors, ParameterServer.Exchange and Initialize. Each is a fixed
// little-endian header followed by values or text, without Protocol Buffers. docs/wire.md defines the format, and only
// this file implements it. Pure. wire/frame_buffer.h puts the same messages into gRPC's memory.

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
  kOpening = 1,  // Names the sender. The first message of a stream, sent once.
  kValues = 2,   // Values of consecutive blocks, or the answer to them.
  // A server's refusal, which is its last message. Only connections without gRPC have it, because gRPC has statuses.
  kRefusal = 3,
};

// The encoding of the values in a message. algorithms/compression.h encodes and decodes them. Messages with other
// numbers are refused.
enum class WireType : uint8_t { kFloat32 = 1, kFloat16 = 2, kBFloat16 = 3, kInt8 = 4, kInt4 = 5, kTopK = 6 };
inline constexpr uint8_t kWireTypeMax = 6;

// WireTypeName returns the name, like "float16". WireTypeText returns the form in texts of refusals, like "2
// (float16)".
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

// Returns how many bytes of the message follow its header.
uint64_t PayloadBytes(const ValuesHeader& header);

// Returns the kind of a client's message, or of an answer that is no refusal. `start` is all or some of the message's
// first bytes, at least one. INVALID_ARGUMENT if the message is neither an opening nor values.
absl::StatusOr<FrameKind> ReadKind(absl::string_view start);

// Returns the opening of a stream. `sender.job_id` may have at most kJobIdBytesMax bytes, `sender.job_key`
// kJobKeyBytesMax.
std::string EncodeOpening(const v1::Sender& sender);
// Reads a whole opening. INVALID_ARGUMENT as from OpeningTailBytes, or if the job id and key have another length than
// announced. The sender's numbers are not checked.
absl::StatusOr<v1::Sender> DecodeOpening(absl::string_view message);

// Returns how many bytes of an opening follow its first kOpeningHeaderBytes, with which `message` begins.
// INVALID_ARGUMENT if the message is too short, no opening, of another version, or has a job id longer than
// kJobIdBytesMax.
absl::StatusOr<size_t> OpeningTailBytes(absl::string_view message);

// Writes the header into the first kValuesHeaderBytes of `message`.
void EncodeValuesHeader(const ValuesHeader& header, absl::Span<char> message);
// Reads the header of a message of values. `start` is the first kValuesHeaderBytes of the message, or all of a shorter
// one. `message_bytes` is the message's length if it is known without the header, as in gRPC. INVALID_ARGUMENT if the
// message is too short, of an unknown type, with a wrong top_k or 0 values, or not as long as its header announces.
// After OK, PayloadBytes(header) bytes follow the header.
absl::StatusOr<ValuesHeader> DecodeValuesHeader(absl::string_view start, std::optional<uint64_t> message_bytes);
// Reads the header of a message that comes after the opening on a connection without gRPC. INVALID_ARGUMENT also if it
// is no message of values.
absl::StatusOr<ValuesHeader> DecodeNextHeader(absl::string_view start);

// Returns the whole message of a refusal. A text of more than 65535 bytes is cut.
std::string EncodeRefusal(const absl::Status& refusal);
bool IsRefusal(absl::string_view start);
// Returns how many bytes of text follow the header. `header` is the first kRefusalHeaderBytes of a refusal.
size_t RefusalTextBytes(absl::string_view header);
// Makes a status from the header and the text. It is never OK: codes that gRPC does not have become INTERNAL.
absl::Status DecodeRefusal(absl::string_view header, absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_WIRE_FRAME_H_
