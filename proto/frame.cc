#include "proto/frame.h"

#include <cstring>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "Messages hold little-endian numbers; this code copies them as they lie in memory."
#endif

namespace hooke {
namespace {

template <typename Number>
void Put(Number value, size_t at, char* message) {
  std::memcpy(message + at, &value, sizeof value);
}

template <typename Number>
Number Get(absl::string_view message, size_t at) {
  Number value;
  std::memcpy(&value, message.data() + at, sizeof value);
  return value;
}

}  // namespace

absl::StatusOr<FrameKind> ReadKind(absl::string_view start) {
  if (start.empty()) return absl::InvalidArgumentError("a message is empty; it begins with its kind, 1 or 2");
  const uint8_t kind = Get<uint8_t>(start, 0);
  if (kind == static_cast<uint8_t>(FrameKind::kOpening)) return FrameKind::kOpening;
  if (kind == static_cast<uint8_t>(FrameKind::kValues)) return FrameKind::kValues;
  return absl::InvalidArgumentError(
      absl::StrCat("a message is of kind ", kind, "; 1 (opening) and 2 (values) are allowed"));
}

std::string EncodeOpening(const v1::Sender& sender) {
  std::string message(kOpeningHeaderBytes, '\0');
  Put(static_cast<uint8_t>(FrameKind::kOpening), 0, message.data());
  Put(kWireVersion, 1, message.data());
  Put(static_cast<uint16_t>(sender.job_id().size()), 2, message.data());
  Put(sender.group(), 4, message.data());
  Put(sender.rank(), 8, message.data());
  Put(sender.incarnation(), 12, message.data());
  return message + sender.job_id();
}

size_t OpeningTailBytes(absl::string_view header) { return Get<uint16_t>(header, 2); }

absl::StatusOr<v1::Sender> DecodeOpening(absl::string_view message) {
  if (message.size() < kOpeningHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an opening has ", message.size(), " bytes; it has at least ", kOpeningHeaderBytes));
  }
  const uint8_t version = Get<uint8_t>(message, 1);
  if (version != kWireVersion) {
    return absl::InvalidArgumentError(absl::StrCat("an opening is of version ", version, " of the wire format; ",
                                                   kWireVersion, " is allowed: install one version everywhere"));
  }
  const uint16_t job_id_bytes = Get<uint16_t>(message, 2);
  const absl::string_view job_id = message.substr(kOpeningHeaderBytes);
  if (job_id.size() != job_id_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an opening announces a job id of ", job_id_bytes, " bytes and has ", job_id.size()));
  }
  v1::Sender sender;
  sender.set_group(Get<uint32_t>(message, 4));
  sender.set_rank(Get<uint32_t>(message, 8));
  sender.set_incarnation(Get<uint32_t>(message, 12));
  sender.set_job_id(std::string(job_id));
  return sender;
}

void EncodeValuesHeader(const ValuesHeader& header, absl::Span<char> message) {
  Put(static_cast<uint8_t>(FrameKind::kValues), 0, message.data());
  Put(static_cast<uint8_t>(WireType::kFloat32), 1, message.data());
  Put(uint16_t{0}, 2, message.data());
  Put(static_cast<uint32_t>(header.values), 4, message.data());
  Put(header.sequence, 8, message.data());
  Put(header.first, 16, message.data());
}

absl::StatusOr<ValuesHeader> DecodeValuesHeader(absl::string_view start, std::optional<uint64_t> message_bytes) {
  if (start.size() < kValuesHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of values has ", start.size(), " bytes; it has more than ", kValuesHeaderBytes));
  }
  const uint8_t type = Get<uint8_t>(start, 1);
  if (type != static_cast<uint8_t>(WireType::kFloat32))
    return absl::InvalidArgumentError(absl::StrCat("values are of type ", type, "; 1 (float32) is allowed"));
  if (Get<uint16_t>(start, 2) != 0) return absl::InvalidArgumentError("bytes 2 and 3 of a message of values are not 0");
  const ValuesHeader header = {Get<uint64_t>(start, 8), Get<uint64_t>(start, 16), Get<uint32_t>(start, 4)};
  if (header.values == 0) return absl::InvalidArgumentError("a message of values announces 0 values; at least 1");
  const uint64_t bytes =
      message_bytes.value_or(kValuesHeaderBytes + header.values * sizeof(float)) - kValuesHeaderBytes;
  if (bytes == header.values * sizeof(float)) return header;
  return absl::InvalidArgumentError(absl::StrCat("a message announces ", header.values, " float32 values and has ",
                                                 bytes, " bytes of them; 4 bytes each are allowed"));
}

std::string EncodeRefusal(const absl::Status& refusal) {
  const absl::string_view text = refusal.message().substr(0, 0xffff);
  std::string message(kRefusalHeaderBytes, '\0');
  Put(static_cast<uint8_t>(FrameKind::kRefusal), 0, &message[0]);
  Put(static_cast<uint8_t>(refusal.code()), 1, &message[0]);
  Put(static_cast<uint16_t>(text.size()), 2, &message[0]);
  return absl::StrCat(message, text);
}

bool IsRefusal(absl::string_view start) {
  return !start.empty() && Get<uint8_t>(start, 0) == static_cast<uint8_t>(FrameKind::kRefusal);
}

size_t RefusalTextBytes(absl::string_view header) { return Get<uint16_t>(header, 2); }

absl::Status DecodeRefusal(absl::string_view header, absl::string_view text) {
  const auto code = static_cast<absl::StatusCode>(Get<uint8_t>(header, 1));
  const bool known = code > absl::StatusCode::kOk && code <= absl::StatusCode::kUnauthenticated;
  return absl::Status(known ? code : absl::StatusCode::kInternal, text);
}

}  // namespace hooke
