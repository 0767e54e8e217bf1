#ifndef HOOKE_WIRE_STEPS_H_
#define HOOKE_WIRE_STEPS_H_

// The limit for steps in messages and files, as docs/wire.md documents it.

#include <cstdint>

namespace hooke {

// No training makes more optimizer steps. All steps up to this one are exact as doubles.
constexpr uint64_t kStepMax = uint64_t{1} << 53;

}  // namespace hooke

#endif  // HOOKE_WIRE_STEPS_H_
