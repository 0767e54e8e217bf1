#include "wire/frame.h"

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

constexpr uint64_t kTopKRun = 16384;
constexpr uint64_t kTopKEntryBytes = 4;
constexpr uint64_t kScaleBytes = 4;

// Returns the bytes of values that are encoded in runs of `run` values, of which the last may be shorter. Each run has
// a scale, and `bits` bits for each value.
uint64_t ScaledBytes(uint64_t values, uint64_t run, uint64_t bits) {
  const uint64_t rest = values % run;
  const auto bytes = [bits](uint64_t count) { return kScaleBytes + (count * bits + 7) / 8; };
  return values / run * bytes(run) + (rest == 0 ? 0 : bytes(rest));
}

absl::Status CheckType(uint8_t type, uint16_t top_k) {
  if (type < 1 || type > kWireTypeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("values are of type ", type, "; 1 (float32) to ", kWireTypeMax, " (top_k) are allowed"));
  }
  const bool sparse = type == static_cast<uint8_t>(WireType::kTopK);
  if (sparse ? top_k >= 1 && top_k <= kTopKRun : top_k == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("bytes 2 and 3 of a message of values are ", top_k, "; ",
                                                 sparse ? "1 to 16384 are" : "0 is", " allowed with type ",
                                                 WireTypeText(static_cast<WireType>(type))));
}

}  // namespace

const char* WireTypeName(WireType type) {
  switch (type) {
    case WireType::kFloat32:
      return "float32";
    case WireType::kFloat16:
      return "float16";
    case WireType::kBFloat16:
      return "bfloat16";
    case WireType::kInt8:
      return "int8";
    case WireType::kInt4:
      return "int4";
    case WireType::kTopK:
      return "top_k";
  }
  return "unknown";
}

std::string WireTypeText(WireType type) { return absl::StrCat(static_cast<int>(type), " (", WireTypeName(type), ")"); }

uint64_t PayloadBytes(const ValuesHeader& header) {
  switch (header.type) {
    case WireType::kFloat32:
      return header.values * sizeof(float);
    case WireType::kFloat16:
    case WireType::kBFloat16:
      return header.values * sizeof(uint16_t);
    case WireType::kInt8:
      return ScaledBytes(header.values, 256, 8);
    case WireType::kInt4:
      return ScaledBytes(header.values, 128, 4);
    case WireType::kTopK: {
      const uint64_t rest = header.values % kTopKRun;
      const uint64_t of_rest = (header.top_k * rest + kTopKRun - 1) / kTopKRun;
      return (header.values / kTopKRun * header.top_k + of_rest) * kTopKEntryBytes;
    }
  }
  return 0;
}

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
  Put(static_cast<uint8_t>(sender.job_id().size()), 2, message.data());
  Put(static_cast<uint8_t>(sender.job_key().size()), 3, message.data());
  Put(sender.group(), 4, message.data());
  Put(sender.rank(), 8, message.data());
  Put(sender.incarnation(), 12, message.data());
  return absl::StrCat(message, sender.job_id(), sender.job_key());
}

absl::StatusOr<size_t> OpeningTailBytes(absl::string_view message) {
  if (message.size() < kOpeningHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an opening has ", message.size(), " bytes; it has at least ", kOpeningHeaderBytes));
  }
  absl::StatusOr<FrameKind> kind = ReadKind(message);
  if (!kind.ok()) return kind.status();
  if (*kind != FrameKind::kOpening) return absl::InvalidArgumentError("the first message is no opening");
  const uint8_t version = Get<uint8_t>(message, 1);
  if (version != kWireVersion) {
    return absl::InvalidArgumentError(absl::StrCat("an opening is of version ", version, " of the wire format; ",
                                                   kWireVersion, " is allowed: install one version everywhere"));
  }
  const uint8_t job_id_bytes = Get<uint8_t>(message, 2);
  if (job_id_bytes > kJobIdBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("an opening announces a job id of ", job_id_bytes, " bytes; 1 to ",
                                                   kJobIdBytesMax, " are allowed"));
  }
  return size_t{job_id_bytes} + Get<uint8_t>(message, 3);
}

absl::StatusOr<v1::Sender> DecodeOpening(absl::string_view message) {
  absl::StatusOr<size_t> tail_bytes = OpeningTailBytes(message);
  if (!tail_bytes.ok()) return tail_bytes.status();
  const absl::string_view tail = message.substr(kOpeningHeaderBytes);
  if (tail.size() != *tail_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("an opening announces a job id and a job key of ", *tail_bytes,
                                                   " bytes together and has ", tail.size()));
  }
  const uint8_t job_id_bytes = Get<uint8_t>(message, 2);
  v1::Sender sender;
  sender.set_group(Get<uint32_t>(message, 4));
  sender.set_rank(Get<uint32_t>(message, 8));
  sender.set_incarnation(Get<uint32_t>(message, 12));
  sender.set_job_id(std::string(tail.substr(0, job_id_bytes)));
  sender.set_job_key(std::string(tail.substr(job_id_bytes)));
  return sender;
}

void EncodeValuesHeader(const ValuesHeader& header, absl::Span<char> message) {
  Put(static_cast<uint8_t>(FrameKind::kValues), 0, message.data());
  Put(static_cast<uint8_t>(header.type), 1, message.data());
  Put(header.top_k, 2, message.data());
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
  const uint16_t top_k = Get<uint16_t>(start, 2);
  if (absl::Status status = CheckType(type, top_k); !status.ok()) return status;
  const ValuesHeader header = {Get<uint64_t>(start, 8), Get<uint64_t>(start, 16), Get<uint32_t>(start, 4),
                               static_cast<WireType>(type), top_k};
  if (header.values == 0) return absl::InvalidArgumentError("a message of values announces 0 values; at least 1");
  const uint64_t announced = PayloadBytes(header);
  const uint64_t bytes = message_bytes.value_or(kValuesHeaderBytes + announced) - kValuesHeaderBytes;
  if (bytes == announced) return header;
  return absl::InvalidArgumentError(absl::StrCat("a message announces ", header.values, " ", WireTypeName(header.type),
                                                 " values and has ", bytes, " bytes of them; ", announced,
                                                 " are allowed"));
}

absl::StatusOr<ValuesHeader> DecodeNextHeader(absl::string_view start) {
  const absl::StatusOr<FrameKind> kind = ReadKind(start);
  if (!kind.ok()) return kind.status();
  if (*kind != FrameKind::kValues) return absl::InvalidArgumentError("a second opening; one is allowed, first");
  return DecodeValuesHeader(start, std::nullopt);
}

std::string EncodeRefusal(const absl::Status& refusal) {
  // The length field has 16 bits.
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
