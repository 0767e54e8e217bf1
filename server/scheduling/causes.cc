#include "server/scheduling/causes.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// A name, a number, an address or HOST:PORT is a run of these.
bool IsOfWord(char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-' || c == ':'; }

bool IsNumber(absl::string_view text) { return !text.empty() && absl::c_all_of(text, absl::ascii_isdigit); }

bool HasPort(absl::string_view word) {
  const size_t colon = word.rfind(':');
  return colon != word.npos && colon > 0 && IsNumber(word.substr(colon + 1));
}

bool NamesOutcome(absl::string_view word) { return word == "signal" || word == "status" || word == "code"; }

bool IsHexadecimal(absl::string_view word) {
  return word.size() > 2 && word.substr(0, 2) == "0x" && absl::c_all_of(word.substr(2), absl::ascii_isxdigit);
}

// Replaces each run of digits by "#".
std::string WithoutNumbers(absl::string_view word) {
  std::string text;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool digit = absl::ascii_isdigit(word[i]);
    if (!digit) text.push_back(word[i]);
    if (digit && (i == 0 || !absl::ascii_isdigit(word[i - 1]))) text.push_back('#');
  }
  return text;
}

}  // namespace

std::string CauseOf(absl::StatusCode code, absl::string_view message, const std::vector<std::string>& hosts) {
  std::string cause = absl::StrCat(absl::StatusCodeToString(code), ": ");
  absl::string_view before;  // The word before.
  while (!message.empty()) {
    const size_t length = static_cast<size_t>(absl::c_find_if_not(message, IsOfWord) - message.begin());
    if (length == 0) {
      cause.push_back(message.front());
      message.remove_prefix(1);
      continue;
    }
    absl::string_view word = message.substr(0, length);
    message.remove_prefix(length);
    // Marks at the end of a word belong to the sentence.
    const size_t last = word.find_last_not_of(".:-");
    const absl::string_view marks = last == word.npos ? word : word.substr(last + 1);
    word.remove_suffix(marks.size());
    if (absl::c_linear_search(hosts, word) || HasPort(word)) {
      absl::StrAppend(&cause, "HOST");
    } else if (IsHexadecimal(word)) {
      absl::StrAppend(&cause, "#");
    } else {
      absl::StrAppend(&cause, IsNumber(word) && NamesOutcome(before) ? std::string(word) : WithoutNumbers(word));
    }
    absl::StrAppend(&cause, marks);
    before = word;
  }
  return cause;
}

}  // namespace hooke
