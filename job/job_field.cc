#include "job/job_field.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "job/command.h"
#include "job/file_manifest.h"
#include "job/site_command.h"

namespace hooke {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::vector<std::string> PathParts(const std::string& field) { return absl::StrSplit(field, '.'); }

// The field always exists: job_keys_test looks up every field that the table names.
const FieldDescriptor& FieldOf(const Message& message, const std::string& name) {
  return *message.GetDescriptor()->FindFieldByName(name);
}

Message& Inner(Message& job, const std::vector<std::string>& parts) {
  Message* message = &job;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    message = message->GetReflection()->MutableMessage(message, &FieldOf(*message, parts[i]));
  }
  return *message;
}

const Message& Inner(const Message& job, const std::vector<std::string>& parts) {
  const Message* message = &job;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    message = &message->GetReflection()->GetMessage(*message, &FieldOf(*message, parts[i]));
  }
  return *message;
}

// Returns the prefix of the enum's value names: "COMPRESSION_" for the enum Compression, or "" if the names have none.
std::string PrefixOf(const EnumDescriptor& type) {
  const std::string prefix = absl::StrCat(absl::AsciiStrToUpper(type.name()), "_");
  return absl::StartsWith(type.value(type.value_count() - 1)->name(), prefix) ? prefix : "";
}

std::string ChoiceOf(const JobKey& key, const EnumDescriptor& type, int number) {
  const EnumValueDescriptor* value = type.FindValueByNumber(number);
  if (number == 0 && key.unused.has_value()) return *key.preset;
  if (number == 0 || value == nullptr) return absl::StrCat("number ", number);
  absl::string_view name = value->name();
  absl::ConsumePrefix(&name, PrefixOf(type));
  return absl::AsciiStrToLower(name);
}

// Returns the name of the boolean field that is set if an integer key has `word` as its value: "interval_auto".
std::string WordField(const std::string& field, const std::string& word) { return absl::StrCat(field, "_", word); }

// Protobuf reflection has no common form for lists and maps. There is one key of each kind, so the code names both
// fields.
void SetTexts(const JobKey& key, const std::vector<std::string>& texts, v1::CommandSpec& command) {
  if (key.type == KeyType::kArguments) {
    *command.mutable_arguments() = {texts.begin(), texts.end()};
    return;
  }
  command.clear_environment();
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> variable = absl::StrSplit(text, absl::MaxSplits('=', 1));
    (*command.mutable_environment())[variable.first] = variable.second;
  }
}

KeyValue GetTexts(const JobKey& key, const v1::CommandSpec& command) {
  KeyValue value;
  if (key.type == KeyType::kArguments) {
    value.texts = {command.arguments().begin(), command.arguments().end()};
  } else {
    for (const auto& [name, text] : command.environment()) value.texts.push_back(absl::StrCat(name, "=", text));
    absl::c_sort(value.texts);  // A protobuf map has no order.
  }
  value.text = CommandText(value.texts);
  return value;
}

}  // namespace

bool IsGiven(const JobKey& key, const v1::JobSpec& job) {
  if (key.type == KeyType::kFiles) return job.command().has_files();
  if (key.type == KeyType::kSites) return HasSites(job);
  if (HasTexts(key)) return !GetTexts(key, job.command()).texts.empty();
  const std::vector<std::string> parts = PathParts(key.field);
  const Message& message = Inner(job, parts);
  const auto has = [&message](const std::string& name) {
    return message.GetReflection()->HasField(message, &FieldOf(message, name));
  };
  if (has(parts.back())) return true;
  return key.type == KeyType::kInteger &&
         absl::c_any_of(key.choices, [&](const std::string& word) { return has(WordField(parts.back(), word)); });
}

void SetField(const JobKey& key, const KeyValue& value, v1::JobSpec& job) {
  if (IsMessage(key)) return;
  if (HasTexts(key)) return SetTexts(key, value.texts, *job.mutable_command());
  const std::vector<std::string> parts = PathParts(key.field);
  Message& message = Inner(job, parts);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& field = FieldOf(message, parts.back());
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumDescriptor& type = *field.enum_type();
      const EnumValueDescriptor* found =
          type.FindValueByName(absl::StrCat(PrefixOf(type), absl::AsciiStrToUpper(value.text)));
      return reflection.SetEnumValue(&message, &field, found == nullptr ? 0 : found->number());
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, value.text);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, &field, value.number);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, value.boolean);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, value.integer);
    default:
      reflection.SetUInt32(&message, &field, static_cast<uint32_t>(value.integer));
  }
  for (const std::string& word : key.choices) {
    reflection.SetBool(&message, &FieldOf(message, WordField(parts.back(), word)), value.text == word);
  }
}

KeyValue GetField(const JobKey& key, const v1::JobSpec& job) {
  if (HasTexts(key)) return GetTexts(key, job.command());
  if (key.type == KeyType::kFiles) return {FilesText(job.command().files()), {}, 0, 0, false};
  if (key.type == KeyType::kSites) return {SitesText(job), {}, 0, 0, false};
  const std::vector<std::string> parts = PathParts(key.field);
  const Message& message = Inner(static_cast<const Message&>(job), parts);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& field = FieldOf(message, parts.back());
  KeyValue value;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      value.text = ChoiceOf(key, *field.enum_type(), reflection.GetEnumValue(message, &field));
      return value;
    case FieldDescriptor::CPPTYPE_STRING:
      value.text = reflection.GetString(message, &field);
      return value;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      value.number = reflection.GetDouble(message, &field);
      value.text = absl::StrCat(value.number);
      return value;
    case FieldDescriptor::CPPTYPE_BOOL:
      value.boolean = reflection.GetBool(message, &field);
      value.text = value.boolean ? "true" : "false";
      return value;
    case FieldDescriptor::CPPTYPE_UINT64:
      value.integer = reflection.GetUInt64(message, &field);
      break;
    default:
      value.integer = reflection.GetUInt32(message, &field);
  }
  value.text = absl::StrCat(value.integer);
  for (const std::string& word : key.choices) {
    if (reflection.GetBool(message, &FieldOf(message, WordField(parts.back(), word)))) value.text = word;
  }
  return value;
}

}  // namespace hooke
