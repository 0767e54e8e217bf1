#include "job/yaml/yaml_error.h"

#include <yaml-cpp/exceptions.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

struct Meaning {
  absl::string_view message;  // The beginning of yaml-cpp's message.
  absl::string_view text;
};

constexpr char kTabText[] = "a line is indented by a tab; indent by spaces";

// The left column has yaml-cpp's words, because it has no error codes.
const Meaning kMeanings[] = {
    {YAML::ErrorMsg::BAD_FILE, "lists or maps are nested too deeply; a job file needs three levels: remove brackets"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a list is not closed; write the missing ]"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW, "a map is not closed; write the missing }"},
    {YAML::ErrorMsg::END_OF_SEQ, "a list ends where more was expected; indent its lines alike"},
    {YAML::ErrorMsg::END_OF_MAP, "a map ends where more was expected; indent its keys alike"},
    {YAML::ErrorMsg::FLOW_END, "a ] or } closes nothing; remove it, or write the bracket that it closes"},
    {YAML::ErrorMsg::EOF_IN_SCALAR, "a quoted text does not end; write the missing quote"},
    {YAML::ErrorMsg::DOC_IN_SCALAR, "a quoted text runs into --- or ...; write the missing quote"},
    {YAML::ErrorMsg::TAB_IN_INDENTATION, kTabText},
    {YAML::ErrorMsg::MAP_VALUE, "a colon is not expected here; begin a new line before the key, or quote the text"},
    {YAML::ErrorMsg::MAP_KEY, "a key is not expected here; begin a new line before it"},
    {YAML::ErrorMsg::BLOCK_ENTRY, "a list's - is not expected here; begin a new line before it"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN, "a character that no text begins with; quote the text"},
    {YAML::ErrorMsg::INVALID_ESCAPE, "an unknown escape after \\; write \\\\, or use single quotes"},
    {YAML::ErrorMsg::INVALID_HEX, "an escape after \\ has too few hexadecimal digits; write all of them"},
    {YAML::ErrorMsg::INVALID_UNICODE, "an escape after \\ is no character; remove it"},
    {YAML::ErrorMsg::UNKNOWN_ANCHOR, "a * refers to an anchor that is not there; write the value, or quote the text"},
    {YAML::ErrorMsg::ALIAS_NOT_FOUND, "a * has no name; write the value, or quote the text"},
    {YAML::ErrorMsg::ANCHOR_NOT_FOUND, "an & has no name; remove it, or quote the text"},
};

bool IsIndentedByTab(absl::string_view line) {
  return absl::StrContains(line.substr(0, line.find_first_not_of(" \t")), '\t');
}

}  // namespace

std::string YamlErrorText(absl::string_view message, absl::string_view line) {
  // For most tabs yaml-cpp only says that it did not expect the text after them.
  if (IsIndentedByTab(line)) return absl::StrCat("is not YAML: ", kTabText);
  for (const Meaning& meaning : kMeanings) {
    if (absl::StartsWith(message, meaning.message)) return absl::StrCat("is not YAML: ", meaning.text);
  }
  return absl::StrCat("is not YAML: ", Escaped(message.substr(0, 200)), "; mend it, or quote the text there");
}

}  // namespace hooke
