#include "client/job_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

// docs/job-file.md has exactly the rows of the table: every key with its default and range, in order, and no other key.
TEST(JobKeysTest, DocumentationHasEveryKeyAndNoOther) {
  std::ifstream in("docs/job-file.md");
  ASSERT_TRUE(in.is_open());
  std::vector<std::string> documented;
  for (std::string line; std::getline(in, line);) {
    if (absl::StartsWith(line, "| `")) documented.push_back(line);
  }
  std::vector<std::string> expected;
  for (const JobKey& key : JobKeys()) expected.push_back(DocumentationRow(key));
  EXPECT_EQ(documented, expected);
}

// Every preset parses as its key's own type and range, and every key is there once.
TEST(JobKeysTest, PresetsAreAllowedValues) {
  std::set<std::string> paths;
  for (const JobKey& key : JobKeys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_FALSE(key.meaning.empty()) << key.path;
    if (key.preset.has_value()) {
      EXPECT_TRUE(ParseKeyValue(key, *key.preset, /*quoted=*/false).ok()) << key.path;
    }
  }
}

// A choice reaches the message as the enum value of its own name (or as its text): never as the refused zero, which
// such a text would leave out, nor as another one's.
TEST(JobKeysTest, EveryChoiceIsAnEnumValue) {
  int tried = 0;
  for (const JobKey& key : JobKeys()) {
    if (key.type != KeyType::kChoice) continue;
    for (const std::string& choice : key.choices) {
      v1::JobSpec job;
      key.set(ParseKeyValue(key, choice, /*quoted=*/false).value(), job);
      EXPECT_THAT(job.ShortDebugString(),
                  testing::ContainsRegex(absl::StrCat(": ((FORMAT_|COMPRESSION_)?", absl::AsciiStrToUpper(choice),
                                                      "|\"", choice, "\")[ }]*$")))
          << key.path << " " << choice;
      ++tried;
    }
  }
  EXPECT_GT(tried, 20);
}

}  // namespace
}  // namespace hooke
