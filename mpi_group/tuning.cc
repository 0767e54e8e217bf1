#include "mpi_group/tuning.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {
namespace {

using nlohmann::json;
using Where = TuningRule::Where;
using Values = TuningRule::Values;
using BetweenNodes = Tuning::BetweenNodes;

constexpr uint64_t kChunkMin = 64;
constexpr uint64_t kChunkMax = uint64_t{1} << 30;
constexpr uint64_t kSlotMin = 4096;
constexpr uint64_t kSlotMax = uint64_t{64} << 20;

constexpr Where kAllWheres[] = {Where::kAnywhere, Where::kOneNode, Where::kSeveralNodes};
constexpr Values kAllValues[] = {Values::kAny, Values::kArena, Values::kPrivate};
constexpr BetweenNodes kAllBetweenNodes[] = {BetweenNodes::kAuto, BetweenNodes::kMpi, BetweenNodes::kSockets};

absl::string_view NameOf(Where where) {
  switch (where) {
    case Where::kAnywhere:
      return "anywhere";
    case Where::kOneNode:
      return "one-node";
    case Where::kSeveralNodes:
      return "several-nodes";
  }
  return "unknown";
}

absl::string_view NameOf(Values values) {
  switch (values) {
    case Values::kAny:
      return "any";
    case Values::kArena:
      return "arena";
    case Values::kPrivate:
      return "private";
  }
  return "unknown";
}

// ObjectReader calls NameOf() through this function, which finds the overloads of both namespaces.
template <typename T>
absl::string_view TextOf(T value) {
  return NameOf(value);
}

// Reads one JSON object. It keeps the first mistake and ignores everything after it.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object.is_object()) Complain("is not an object");
  }

  template <typename T, size_t n>
  void Read(const char* key, const T (&all)[n], T& into) {
    const json* value = Find(key);
    if (value == nullptr) return;
    std::vector<absl::string_view> names;
    for (T each : all) {
      names.push_back(TextOf(each));
      if (value->is_string() && value->get_ref<const std::string&>() == names.back()) {
        into = each;
        return;
      }
    }
    Complain(absl::StrCat("\"", key, "\" is ", value->dump(), "; it is one of ", absl::StrJoin(names, ", ")));
  }

  void Read(const char* key, uint64_t smallest, uint64_t largest, uint64_t multiple, uint64_t& into) {
    const json* value = Find(key);
    if (value == nullptr) return;
    if (value->is_number_unsigned()) {
      const auto number = value->get<uint64_t>();
      if (number >= smallest && number <= largest && number % multiple == 0) {
        into = number;
        return;
      }
    }
    Complain(absl::StrCat("\"", key, "\" is ", value->dump(), "; it is a whole number from ", smallest, " to ", largest,
                          multiple > 1 ? absl::StrCat(", a multiple of ", multiple) : ""));
  }

  void Read(const char* key, bool& into) {
    const json* value = Find(key);
    if (value == nullptr) return;
    if (value->is_boolean()) {
      into = value->get<bool>();
    } else {
      Complain(absl::StrCat("\"", key, "\" is ", value->dump(), "; it is true or false"));
    }
  }

  const json* Find(const char* key) {
    known_.push_back(key);
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  void Require(const char* key) {
    if (status_.ok() && object_.find(key) == object_.end()) Complain(absl::StrCat("has no \"", key, "\""));
  }

  void Complain(const std::string& mistake) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(what_, ": ", mistake));
  }

  // Returns the first mistake. Call it last: it also reports keys that no Read() or Find() asked for.
  absl::Status Finish() {
    if (!status_.ok()) return status_;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      Complain(absl::StrCat("unknown key \"", key, "\"; known are ", absl::StrJoin(known_, ", ")));
    }
    return status_;
  }

 private:
  const json& object_;
  const std::string what_;
  std::vector<std::string> known_;
  absl::Status status_;
};

absl::StatusOr<TuningRule> ParseRule(const json& object, size_t index) {
  TuningRule rule;
  ObjectReader reader(object, absl::StrCat("tuning: rule ", index));
  reader.Require("operation");
  reader.Require("algorithm");
  reader.Read("operation", kAllOperations, rule.operation);
  reader.Read("where", kAllWheres, rule.where);
  reader.Read("values", kAllValues, rule.values);
  reader.Read("oversubscribed", rule.oversubscribed);
  reader.Read("algorithm", kAllAlgorithms, rule.algorithm);
  reader.Read("bytes_max", 0, TuningRule::kAnyBytes, 1, rule.bytes_max);
  reader.Read("chunk_bytes", kChunkMin, kChunkMax, kChunkMin, rule.chunk_bytes);
  uint64_t ranks_max = TuningRule::kAnyRanks;
  uint64_t drivers = 0;
  reader.Read("ranks_max", 1, TuningRule::kAnyRanks, 1, ranks_max);
  reader.Read("drivers", 0, 1 << 16, 1, drivers);
  rule.ranks_max = static_cast<int>(ranks_max);
  rule.drivers = static_cast<int>(drivers);
  if (rule.algorithm == Algorithm::kNothing || !Does(rule.algorithm, rule.operation)) {
    std::vector<absl::string_view> names;
    for (Algorithm algorithm : kAllAlgorithms) {
      if (algorithm != Algorithm::kNothing && Does(algorithm, rule.operation)) names.push_back(TextOf(algorithm));
    }
    reader.Complain(absl::StrCat("there is no ", TextOf(rule.operation), " by ", TextOf(rule.algorithm), "; there is ",
                                 absl::StrJoin(names, ", ")));
  }
  absl::Status status = reader.Finish();
  if (!status.ok()) return status;
  return rule;
}

// Leaves out keys that have their default value, except chunk_bytes.
nlohmann::ordered_json JsonOf(const TuningRule& rule) {
  const auto text = [](absl::string_view name) { return std::string(name); };
  nlohmann::ordered_json object;
  object["operation"] = text(TextOf(rule.operation));
  if (rule.where != Where::kAnywhere) object["where"] = text(TextOf(rule.where));
  if (rule.values != Values::kAny) object["values"] = text(TextOf(rule.values));
  if (rule.ranks_max != TuningRule::kAnyRanks) object["ranks_max"] = rule.ranks_max;
  if (rule.oversubscribed) object["oversubscribed"] = true;
  if (rule.bytes_max != TuningRule::kAnyBytes) object["bytes_max"] = rule.bytes_max;
  object["algorithm"] = text(TextOf(rule.algorithm));
  object["chunk_bytes"] = rule.chunk_bytes;
  if (rule.drivers != 0) object["drivers"] = rule.drivers;
  return object;
}

}  // namespace

absl::string_view NameOf(Tuning::BetweenNodes between) {
  switch (between) {
    case BetweenNodes::kAuto:
      return "auto";
    case BetweenNodes::kMpi:
      return "mpi";
    case BetweenNodes::kSockets:
      return "sockets";
  }
  return "unknown";
}

bool operator==(const TuningRule& a, const TuningRule& b) {
  const auto all = [](const TuningRule& rule) {
    return std::tie(rule.operation, rule.where, rule.values, rule.ranks_max, rule.oversubscribed, rule.bytes_max,
                    rule.algorithm, rule.chunk_bytes, rule.drivers);
  };
  return all(a) == all(b);
}

absl::StatusOr<Tuning> ParseTuning(absl::string_view text) {
  const json document = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return absl::InvalidArgumentError("tuning: the text is not JSON");
  Tuning tuning;
  ObjectReader reader(document, "tuning");
  reader.Read("slot_bytes", kSlotMin, kSlotMax, kChunkMin, tuning.slot_bytes);
  reader.Read("between_nodes", kAllBetweenNodes, tuning.between_nodes);
  const json* rules = reader.Find("rules");
  if (rules != nullptr && !rules->is_array()) reader.Complain("\"rules\" is not an array");
  absl::Status status = reader.Finish();
  if (!status.ok() || rules == nullptr) return status.ok() ? absl::StatusOr<Tuning>(tuning) : status;
  for (size_t i = 0; i < rules->size(); ++i) {
    const absl::StatusOr<TuningRule> rule = ParseRule((*rules)[i], i);
    if (!rule.ok()) return rule.status();
    tuning.rules.push_back(*rule);
  }
  return tuning;
}

std::string FormatTuning(const Tuning& tuning) {
  std::string rules = absl::StrJoin(tuning.rules, ",\n  ", [](std::string* out, const TuningRule& rule) {
    absl::StrAppend(out, JsonOf(rule).dump());
  });
  const std::string between = tuning.between_nodes == BetweenNodes::kAuto
                                  ? ""
                                  : absl::StrCat(",\n \"between_nodes\": \"", NameOf(tuning.between_nodes), "\"");
  return absl::StrCat("{\"slot_bytes\": ", tuning.slot_bytes, between, ",\n \"rules\": [", rules.empty() ? "" : "\n  ",
                      rules, "]}\n");
}

}  // namespace hooke
