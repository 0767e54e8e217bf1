#ifndef HOOKE_JOB_NEAR_NAME_H_
#define HOOKE_JOB_NEAR_NAME_H_

// Guesses which name was meant by a misspelt one. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

// Returns the first of the nearest names, or "" if none is near. Near means that at most two characters are added,
// removed or replaced, and at most half as many as `wrong` has.
std::string Nearest(absl::string_view wrong, const std::vector<std::string>& names);

}  // namespace hooke

#endif  // HOOKE_JOB_NEAR_NAME_H_
