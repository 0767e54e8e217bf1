#include "mpi_group/transport/call_label.h"

#include "absl/strings/str_cat.h"

namespace hooke {

std::string CallLabel::Text() const {
  if (number == 0) return "no call";
  std::string text = absl::StrCat("call ", number, ": ", operation);
  if (op.has_value()) absl::StrAppend(&text, " (", NameOf(*op), ")");
  if (type.has_value()) {
    absl::StrAppend(&text, " of ", values, " ", NameOf(*type));
  } else if (values > 0) {
    absl::StrAppend(&text, " of ", values, " bytes");
  }
  if (shared) absl::StrAppend(&text, " in shared memory");
  if (root >= 0) absl::StrAppend(&text, " with root ", root);
  if (detail != 0) absl::StrAppend(&text, ", layout ", absl::Hex(detail, absl::kZeroPad16));
  return text;
}

uint32_t CallLabel::Fingerprint() const {
  uint64_t hash = number;
  const auto add = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  for (char letter : operation) hash = hash * 31 + static_cast<unsigned char>(letter);
  add(values);
  add(uint64_t{shared});
  // Types and reductions count from 1, because 0 stands for none.
  add(type.has_value() ? uint64_t{1} + static_cast<uint64_t>(*type) : 0);
  add(op.has_value() ? uint64_t{1} + static_cast<uint64_t>(*op) : 0);
  add(static_cast<uint64_t>(root) + 1);
  add(detail);
  return static_cast<uint32_t>(hash);
}

}  // namespace hooke
