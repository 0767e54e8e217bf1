#ifndef HOOKE_CLIENT_DOCTOR_VALUE_TEXT_H_
#define HOOKE_CLIENT_DOCTOR_VALUE_TEXT_H_

// Values as text in findings. Pure.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

std::string SpaceText(uint64_t bytes);         // "1.5 GiB".
std::string SecondsText(absl::Duration took);  // "0.04 s", "3.0 s".
std::string FirstLine(
    absl::string_view text);  // The first line that is not empty, at most 200 bytes; else "no output".
// The last line that is not empty, at most 200 bytes; else "no output".
std::string LastLine(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_VALUE_TEXT_H_
