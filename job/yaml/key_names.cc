#include "job/yaml/key_names.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "job/job_keys.h"
#include "job/near_name.h"

namespace hooke {

std::string KeyPath(absl::string_view section, absl::string_view name) {
  return section.empty() ? std::string(name) : absl::StrCat(section, ".", name);
}

bool IsSection(absl::string_view path) {
  return absl::c_any_of(JobKeys(),
                        [path](const JobKey& key) { return absl::StartsWith(key.path, absl::StrCat(path, ".")); });
}

std::vector<std::string> NamesIn(absl::string_view section) {
  std::vector<std::string> names;
  for (const JobKey& key : JobKeys()) {
    absl::string_view rest = key.path;
    if (!section.empty() && !absl::ConsumePrefix(&rest, absl::StrCat(section, "."))) continue;
    std::string name(rest.substr(0, rest.find('.')));
    if (!absl::c_linear_search(names, name)) names.push_back(std::move(name));
  }
  return names;
}

std::string DidYouMean(absl::string_view section, absl::string_view name) {
  std::string guess = Nearest(name, NamesIn(section));
  for (const JobKey& key : JobKeys()) {
    if (guess.empty() && absl::EndsWith(absl::StrCat(".", key.path), absl::StrCat(".", name))) guess = key.path;
  }
  return guess.empty() ? "" : absl::StrCat(" (did you mean \"", guess, "\"?)");
}

}  // namespace hooke
