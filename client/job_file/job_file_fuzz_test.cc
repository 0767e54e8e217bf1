// Parses random job files, made from a seed. No file crashes the parser. Each refusal is short and has a line. The
// coordinator accepts every file that the client accepts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/job_file/local_job_file.h"
#include "job/job_check.h"
#include "job/job_keys.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

constexpr int kFiles = 3000;

class Chance {
 public:
  explicit Chance(uint32_t seed) : engine_(seed) {}

  size_t Below(size_t bound) { return engine_() % bound; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& some) {
    return some[Below(some.size())];
  }

 private:
  std::mt19937 engine_;
};

// Returns a value that the key allows, or one as from a mistake or an attack.
std::string ValueOf(const JobKey& key, Chance& chance) {
  static const auto& nonsense = *new std::vector<std::string>{"",
                                                              "     ",
                                                              "\"  \"",
                                                              "\"a\\nb\"",
                                                              "\"\\e[31mred\"",
                                                              "\"\\uFEFF\"",
                                                              "!foo 3",
                                                              "!!int 4",
                                                              "1e300",
                                                              "1e400",
                                                              "1e-300",
                                                              "1e-400",
                                                              "1e-40",
                                                              "-1",
                                                              "0",
                                                              "nan",
                                                              ".inf",
                                                              "[1, 2]",
                                                              "{a: 1}",
                                                              "*nowhere",
                                                              "&here 1",
                                                              "~",
                                                              "null",
                                                              "\"4\"",
                                                              "0x10",
                                                              "99999999999999999999",
                                                              "\xff\xfe",
                                                              "a: b",
                                                              "- a",
                                                              "|\n  text",
                                                              "'",
                                                              "\"",
                                                              "}",
                                                              "]"};
  if (chance.OneIn(40)) return chance.Of(nonsense);
  if (!key.choices.empty() && (key.type == KeyType::kChoice || chance.OneIn(3))) return chance.Of(key.choices);
  switch (key.type) {
    case KeyType::kInteger:
      return absl::StrCat(chance.OneIn(2) ? 1 + chance.Below(8) : static_cast<uint64_t>(key.range.max));
    case KeyType::kNumber:
      return chance.OneIn(2)
                 ? absl::StrCat(key.range.min + (key.range.max - key.range.min) * 0.001 * chance.Below(1000))
                 : absl::StrCat(chance.OneIn(2) ? key.range.min : key.range.max);
    case KeyType::kBoolean:
      return chance.OneIn(2) ? "true" : "false";
    case KeyType::kArguments:
      return chance.OneIn(2) ? "[python3, train.py, --lr, 0.1]" : "[\"\"]";
    case KeyType::kEnvironment:
      return chance.OneIn(2) ? "{A: 1, B: \"\"}" : "{PMI_RANK: 0}";
    case KeyType::kFiles:
      return chance.OneIn(2) ? "[no-such-file.py, src/]" : "[../a]";
    case KeyType::kSites:
      if (chance.OneIn(2)) return "{hpc: {slurm: {time: 60, partition: long}}}";
      return chance.OneIn(2) ? "{hpc: {interpreter: /a}}" : "{hpc: {interpreter: a, slurm: {time: x}}, b: 1}";
    default:
      return absl::StrCat("a", chance.Below(100));
  }
}

// True for most keys that the file must not have, because it has a command, or because it has none. A few are kept, as
// mistakes.
bool IsLeftOut(const JobKey& key, bool with_command, Chance& chance) {
  if (chance.OneIn(100)) return false;
  if (key.type == KeyType::kArguments) return !with_command;
  return DependsOnCommand(key) && (ConditionOf(key).need == Condition::Need::kGiven) != with_command;
}

// Returns a file with all required keys and some others.
std::string FileOf(Chance& chance) {
  std::string text;
  std::vector<absl::string_view> open;  // The sections around the last line.
  const size_t others = 1 + chance.Below(12);
  const bool with_command = chance.OneIn(4);
  for (const JobKey& key : JobKeys()) {
    if (IsLeftOut(key, with_command, chance)) continue;
    const bool needed = key.required() || (with_command && key.type == KeyType::kArguments);
    if (key.type == KeyType::kJsonFile || (!needed && chance.OneIn(others + 1) == false)) continue;
    std::vector<absl::string_view> parts = absl::StrSplit(key.path, '.');
    const absl::string_view name = parts.back();
    parts.pop_back();
    size_t same = 0;
    while (same < open.size() && same < parts.size() && open[same] == parts[same]) ++same;
    for (size_t i = same; i < parts.size(); ++i) {
      absl::StrAppend(&text, std::string(2 * i, ' '), parts[i], ":\n");
    }
    open = parts;
    absl::StrAppend(&text, std::string(2 * parts.size(), ' '), name, ": ", ValueOf(key, chance), "\n");
    // Adds the key a second time at the top level, with dots in its name.
    if (chance.OneIn(400)) {
      absl::StrAppend(&text, key.path, ": ", ValueOf(key, chance), "\n");
      open.clear();
    }
  }
  return text;
}

// Removes, inserts or doubles some bytes.
void Damage(std::string& text, Chance& chance) {
  static const auto& some =
      *new std::vector<std::string>{"[",  "]",   "{",   "}", ":", "\n",   "\t",       "\"",
                                    "'",  "&a",  "*a",  "!", "?", "\x1b", "\xc2\x9b", std::string(1, '\0'),
                                    "- ", "---", "...", "#"};
  for (size_t i = chance.Below(4); i > 0 && !text.empty(); --i) {
    const size_t at = chance.Below(text.size());
    if (chance.OneIn(3)) {
      text.erase(at, 1 + chance.Below(8));
    } else if (chance.OneIn(2)) {
      text.insert(at, chance.Of(some));
    } else {
      text.insert(at, text.substr(at, 1 + chance.Below(40)));
    }
  }
}

// True if a line begins with a key's name that has a dot. In undamaged files such a line is never inside a quoted or
// block text.
bool HasDottedName(const std::string& text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    for (const JobKey& key : JobKeys()) {
      if (absl::StrContains(key.path, '.') && absl::StartsWith(line, absl::StrCat(key.path, ": "))) return true;
    }
  }
  return false;
}

// Checks that every line of an error starts with the file and one of its line numbers. The last line may be "N more
// problems".
void CheckError(const std::string& text, const std::string& error) {
  const long lines = std::count(text.begin(), text.end(), '\n') + 1;
  EXPECT_LT(error.size(), 6000u);
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(error, '\n'))) {
    EXPECT_EQ(Escaped(line), line) << "a raw control character";
    if (absl::StrContains(line, "; mend these first")) continue;
    ASSERT_TRUE(absl::StartsWith(line, "job.yaml:")) << line;
    const std::string rest = line.substr(9);
    ASSERT_TRUE(!rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0]))) << line;
    EXPECT_GE(std::stol(rest), 1) << line;
    EXPECT_LE(std::stol(rest), lines + 1) << line;
    EXPECT_TRUE(absl::StrContains(rest, ": ")) << line;
  }
}

TEST(JobFileFuzzTest, FilesMadeByChance) {
  int taken = 0;
  int refused = 0;
  for (uint32_t seed = 0; seed < kFiles; ++seed) {
    Chance chance(seed);
    std::string text = FileOf(chance);
    if (chance.OneIn(3)) Damage(text, chance);
    const absl::StatusOr<LocalJobFile> file = ParseJobFile(text, "job.yaml", "/jobs");
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", text));
    if (file.ok()) {
      ++taken;
      EXPECT_FALSE(HasDottedName(text));
      for (const JobProblem& problem : CheckJob(file->spec)) ADD_FAILURE() << problem.key << ": " << problem.message;
    } else {
      ++refused;
      EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
      CheckError(text, std::string(file.status().message()));
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, kFiles / 4);
  std::cout << taken << " taken, " << refused << " refused\n";
}

// Parses random bytes, which were never YAML.
TEST(JobFileFuzzTest, BytesByChance) {
  for (uint32_t seed = 0; seed < kFiles; ++seed) {
    std::mt19937 engine(seed);
    std::string text(engine() % 400, '\0');
    for (char& c : text) c = static_cast<char>(engine() % 256);
    const absl::StatusOr<LocalJobFile> file = ParseJobFile(text, "job.yaml", "/jobs");
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ASSERT_FALSE(file.ok());
    CheckError(text, std::string(file.status().message()));
  }
}

}  // namespace
}  // namespace hooke
