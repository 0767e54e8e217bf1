#include "job/job_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "job/job_check.h"
#include "job/job_field.h"
#include "job/job_keys.h"
#include "job/job_relations.h"

namespace hooke {
namespace {

// docs/job-file.md has exactly the tables that the code makes. They hold every key with its default and range, and
// every relation.
TEST(JobTablesTest, DocumentationHasThemAndNoOther) {
  std::ifstream in("docs/job-file.md");
  ASSERT_TRUE(in.is_open());
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::string documented;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, "|")) absl::StrAppend(&documented, line, "\n");
  }
  EXPECT_EQ(documented, absl::StrJoin(JobTables(), ""))
      << "refresh the page with: bazel run //job:write_tables -- \"$PWD/docs/job-file.md\"";
}

// WithJobTables keeps the text around a table and removes the table's old rows.
TEST(JobTablesTest, AreWrittenInTheirPlace) {
  const std::string table = JobTables()[0];
  const std::string header = table.substr(0, table.find('\n') + 1);
  EXPECT_EQ(WithJobTables(absl::StrCat("# A\n\n", header, "|---|\n| old |\n\nB\n")),
            absl::StrCat("# A\n\n", table, "\nB\n"));
  EXPECT_EQ(WithJobTables("| another |\n|---|"), "| another |\n|---|");
}

// The table of relations names only keys that exist and values that they allow.
TEST(JobRelationsTest, NameKeysThatThereAre) {
  for (const JobRelation& relation : JobRelations()) {
    const JobKey* key = FindJobKey(relation.key);
    const JobKey* other = FindJobKey(relation.other);
    ASSERT_NE(key, nullptr) << relation.key;
    ASSERT_NE(other, nullptr) << relation.other;
    for (const std::string& value : relation.values) {
      EXPECT_TRUE(ParseKeyValue(*key, value, /*quoted=*/false).ok()) << relation.key << " " << value;
    }
    for (const std::string& value : relation.others) EXPECT_THAT(other->choices, testing::Contains(value));
    EXPECT_EQ(relation.need == Need::kOneOf, !relation.others.empty()) << relation.key;
    EXPECT_FALSE(relation.remedy.empty()) << relation.key;
    for (const std::string& more : {relation.divided_by, relation.unless}) {
      EXPECT_TRUE(more.empty() || FindJobKey(more) != nullptr) << more;
    }
    // kNotGiven has a meaning only for keys with `unused`.
    EXPECT_TRUE(relation.need != Need::kNotGiven || other->unused.has_value()) << relation.other;
  }
}

// `only_with` names only keys and values that exist.
TEST(JobRelationsTest, ConditionsNameValuesThatThereAre) {
  for (const JobKey& key : JobKeys()) {
    if (key.only_with.empty()) continue;
    const Condition condition = ConditionOf(key);
    const JobKey* other = FindJobKey(condition.key);
    ASSERT_NE(other, nullptr) << key.path;
    for (const std::string& value : condition.values) {
      EXPECT_TRUE(ParseKeyValue(*other, value, /*quoted=*/false).ok()) << key.path << " " << value;
    }
  }
}

}  // namespace
}  // namespace hooke
