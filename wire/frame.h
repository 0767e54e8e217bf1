#ifndef HOOKE_WIRE_FRAME_H_
#define HOOKE_WIRE_FRAME_H_

// The messages of the streams that carry tensors, ParameterServer.Exchange and Initialize: a fixed little-endian header
// and the values behind it, no Protocol Buffers. docs/wire.md is the format; this is the one place that knows it. Pure;
// used by both ends. wire/frame_buffer.h has the same messages in gRPC's memory.

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
  kOpening = 1,  // Who sends; the first message of a stream, once.
  kValues = 2,   // Values of consecutive blocks; or the answer to them.
  kRefusal = 3,  // Of a server, on a connection without gRPC, which has statuses of its own; the last message.
};

// How values are encoded (algorithms/compression.h does it). Every other number is refused.
enum class WireType : uint8_t { kFloat32 = 1, kFloat16 = 2, kBFloat16 = 3, kInt8 = 4, kInt4 = 5, kTopK = 6 };
inline constexpr uint8_t kWireTypeMax = 6;

// "float16"; and as the texts of refusals have it, "2 (float16)".
const char* WireTypeName(WireType type);
std::string WireTypeText(WireType type);

inline constexpr uint8_t kWireVersion = 1;
inline constexpr size_t kJobIdBytesMax = 100;
inline constexpr size_t kOpeningHeaderBytes = 16;                  // The job id follows.
inline constexpr size_t kValuesHeaderBytes = 24;                   // The values follow.
inline constexpr size_t kRefusalHeaderBytes = kValuesHeaderBytes;  // The text follows.
inline constexpr uint64_t kFrameValuesMax = 0xffffffff;

struct ValuesHeader {
  uint64_t sequence = 0;  // Of the exchange, >= 1; 0 in Initialize.
  uint64_t first = 0;     // Index of the first value in the whole vector.
  uint64_t values = 0;    // How many follow; 1 to kFrameValuesMax.
  WireType type = WireType::kFloat32;
  uint16_t top_k = 0;  // kTopK: how many of each 16384 values are there, 1 to 16384. Others: 0.
};

// How many bytes the values of a message are: all behind the header.
uint64_t PayloadBytes(const ValuesHeader& header);

// What a message of a client, or an answer, is; `start` is its first bytes, all of them or at least one.
// INVALID_ARGUMENT: neither an opening nor values.
absl::StatusOr<FrameKind> ReadKind(absl::string_view start);

// `sender.job_id` has at most 65535 bytes.
std::string EncodeOpening(const v1::Sender& sender);
// A whole message. INVALID_ARGUMENT: too short, another version, or a job id of another length than it says. The sender
// is not checked.
absl::StatusOr<v1::Sender> DecodeOpening(absl::string_view message);

// How many bytes of an opening follow its first kOpeningHeaderBytes.
size_t OpeningTailBytes(absl::string_view header);

// Writes the header into the first kValuesHeaderBytes of `message`.
void EncodeValuesHeader(const ValuesHeader& header, absl::Span<char> message);
// `start` is the first kValuesHeaderBytes of a message, or all of a shorter one. `message_bytes`: the message's length,
// where something else than the message says it. INVALID_ARGUMENT: too short, another type, or another length than it
// says. After OK exactly PayloadBytes follow.
absl::StatusOr<ValuesHeader> DecodeValuesHeader(absl::string_view start, std::optional<uint64_t> message_bytes);

// A whole message; a long text is cut.
std::string EncodeRefusal(const absl::Status& refusal);
bool IsRefusal(absl::string_view start);
// How many bytes of text follow the first kRefusalHeaderBytes; the status of both. Never OK: a code that is none of
// gRPC's is INTERNAL.
size_t RefusalTextBytes(absl::string_view header);
absl::Status DecodeRefusal(absl::string_view header, absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_WIRE_FRAME_H_
