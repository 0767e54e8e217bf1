#include "job/near_name.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hooke {
namespace {

// The Levenshtein distance: the number of single characters that are added, removed or replaced.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Nearest(absl::string_view wrong, const std::vector<std::string>& names) {
  // Computing the distance takes time proportional to the product of both lengths. A longer text is not a misspelt
  // name.
  constexpr size_t kLongest = 64;
  std::string nearest;
  // At most two characters may differ, and at most half of a short word.
  size_t best = std::min<size_t>(3, wrong.size() / 2 + 1);
  if (wrong.size() > kLongest) return nearest;
  for (const std::string& name : names) {
    const size_t distance = Distance(wrong, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace hooke
