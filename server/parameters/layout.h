#ifndef HOOKE_SERVER_PARAMETERS_LAYOUT_H_
#define HOOKE_SERVER_PARAMETERS_LAYOUT_H_

// Checks of the layout of a center as it comes over the wire. Pure.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Number of values of the vector that `layout` describes. INVALID_ARGUMENT naming the first parameter that breaks a
// rule, and the rule: names unique, 1 to 255 bytes; type FLOAT32; no dimension 0; at least one parameter; fewer than
// 2^60 values in all. The same where the description of the model, if there is one, is out of range.
absl::StatusOr<uint64_t> CheckLayout(const v1::Layout& layout);

// FAILED_PRECONDITION naming the first parameter that differs, with both sides' name, type and shape.
absl::Status CompareLayouts(const v1::Layout& center, const v1::Layout& group);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_LAYOUT_H_
