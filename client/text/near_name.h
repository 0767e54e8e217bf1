#ifndef HOOKE_CLIENT_TEXT_NEAR_NAME_H_
#define HOOKE_CLIENT_TEXT_NEAR_NAME_H_

// Guesses which name was meant by a wrong one. Pure.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

// The first of the nearest of `names`, or "" when none is near: at most two characters added, removed or replaced.
std::string Nearest(absl::string_view wrong, const std::vector<std::string>& names);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_NEAR_NAME_H_
