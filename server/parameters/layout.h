#ifndef HOOKE_SERVER_PARAMETERS_LAYOUT_H_
#define HOOKE_SERVER_PARAMETERS_LAYOUT_H_

// Checks a center's layout as it arrives over the wire. Pure.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Returns the number of values in the vector that `layout` describes. INVALID_ARGUMENT names the first parameter that
// breaks a rule, and the rule. The rules: there is at least one parameter, and all have fewer than 2^60 values
// together. Names are unique and have 1 to 255 bytes. The type is FLOAT32, and no dimension is 0. If the description of
// the model is out of range, that is INVALID_ARGUMENT, too.
absl::StatusOr<uint64_t> CheckLayout(const v1::Layout& layout);

// Returns OK if the layouts are equal. FAILED_PRECONDITION names the first parameter that differs, with its name, type
// and shape on both sides.
absl::Status CompareLayouts(const v1::Layout& center, const v1::Layout& group);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_LAYOUT_H_
