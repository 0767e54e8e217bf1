#include "job/trace/operation_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hooke {

std::string OperationText(v1::Operation operation) {
  if (!v1::Operation_IsValid(operation)) return absl::StrCat("operation ", operation);
  return absl::StrReplaceAll(absl::AsciiStrToLower(v1::Operation_Name(operation)), {{"_", "-"}});
}

}  // namespace hooke
