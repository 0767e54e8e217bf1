// Texts that are no job file, because they are no YAML, no map, or no text: what is wrong, at which line, and what to
// do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/job_file/job_file_samples.h"
#include "client/job_file/local_job_file.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// Texts that are no map of keys are refused, and none crashes the parser.
TEST(JobFileTextTest, RefusesWhatIsNoJobFile) {
  const std::string empty =
      "job.yaml:1: is empty; a job file needs at least name, model, data.train and data.test, or name and command";
  EXPECT_EQ(ErrorOf(""), empty);
  EXPECT_EQ(ErrorOf("# only a comment\n"), empty);
  EXPECT_EQ(ErrorOf("just words"),
            "job.yaml:1: is not a map of keys; a job file needs at least name, model, data.train and data.test, or "
            "name and command");
  EXPECT_THAT(ErrorOf("- a\n- b\n"), HasSubstr("is not a map of keys"));
  EXPECT_THAT(ErrorOf("name: [\n"), HasSubstr("is not YAML"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("is not YAML"));
  EXPECT_THAT(ErrorOf(absl::string_view("\x7f"
                                        "ELF\x00\x01\x02",
                                        7)),
              HasSubstr("job.yaml"));
}

// If a text is not YAML, the error has line, column and remedy. It does not use the parser's words.
TEST(JobFileTextTest, SaysWhereTextIsNotYaml) {
  EXPECT_EQ(ErrorOf("name: a\nmodel: [b\n"), "job.yaml:3:1: is not YAML: a list is not closed; write the missing ]");
  EXPECT_EQ(ErrorOf("name: a\nmodel: {b: c\n"), "job.yaml:3:1: is not YAML: a map is not closed; write the missing }");
  EXPECT_THAT(ErrorOf("name: " + std::string(5000, '[')),
              HasSubstr("is not YAML: lists or maps are nested too deeply; a job file needs three levels: remove "
                        "brackets"));
  EXPECT_THAT(ErrorOf("name: a\n\tmodel: b\n"),
              testing::MatchesRegex("job.yaml:2:[0-9]+: is not YAML: a line is indented by a tab; indent by spaces"));
  EXPECT_THAT(ErrorOf("name: a: b\n"), HasSubstr("job.yaml:1:8: is not YAML: a colon is not expected here"));
  EXPECT_THAT(ErrorOf("name: *a\n"), HasSubstr("a * refers to an anchor that is not there"));
}

// If a section's keys are indented by a tab, the error is about the tab, not about what the parser found after it.
TEST(JobFileTextTest, KeysIndentedByATabAreToldAsSuch) {
  for (const char* section : {"groups:\n\tcount: 2\n", "groups:\n  count: 2\n\tranks: 2\n", "groups:\n \tcount: 2\n"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(kLeast, section)), HasSubstr("is not YAML: a line is indented by a tab; indent by "
                                                                  "spaces"))
        << section;
  }
}

// An unclosed quote is reported once, at its line, even if the file ends after it.
TEST(JobFileTextTest, AQuoteThatIsNotClosedIsToldAtItsLine) {
  const std::string what = ": a quoted text does not end in its line; write the missing quote";
  for (const char quote : {'"', '\''}) {
    const std::string open(1, quote);
    EXPECT_EQ(ErrorOf(absl::StrCat("name: a\nmodel: mlp\ndata:\n  train: /x\n  test: ", open, "/y\n")),
              absl::StrCat("job.yaml:5", what));
    EXPECT_EQ(ErrorOf(absl::StrCat("name: ", open, "a\nmodel: mlp\ndata: {train: a, test: b}\n")),
              absl::StrCat("job.yaml:1", what));
    EXPECT_EQ(ErrorOf(absl::StrCat("name: ", open, "a\nmodel: ", open, "mlp", open, "\n")),
              absl::StrCat("job.yaml:1", what));
    EXPECT_EQ(ErrorOf(absl::StrCat("\xef\xbb\xbf", "# \xc3\xa4\nname: &n ", open, "a\n")),
              absl::StrCat("job.yaml:2", what));
    EXPECT_TRUE(ParseJobFile(absl::StrCat("name: ", open, "a", open, "\nmodel: mlp\ndata: {train: ", open, "it", open,
                                          open == "'" ? "'s'" : "", ", test: &t ", open, "b", open, "}\n"),
                             "job.yaml", "/jobs")
                    .ok())
        << quote;
  }
  EXPECT_TRUE(ParseJobFile("name: a\nmodel: mlp\ndata: {train: \"a\\\"b\", test: b}\n", "job.yaml", "/jobs").ok());
}

// A NUL byte is reported as such, with its line. UTF-16 has such bytes and is read.
TEST(JobFileTextTest, ANulByteIsToldAsSuch) {
  const std::string nul(1, '\0');
  const std::string what = "is not a text: it has a NUL byte; save it as UTF-8";
  EXPECT_EQ(ErrorOf(absl::StrCat("name: a\nmodel: m", nul, "lp\n")), absl::StrCat("job.yaml:2: ", what));
  EXPECT_EQ(ErrorOf(absl::StrCat(kLeast, nul)), absl::StrCat("job.yaml:4: ", what));
  EXPECT_EQ(ErrorOf(absl::StrCat("\x7f", "ELF", nul, "\x01")), absl::StrCat("job.yaml:1: ", what));
  std::string little, big;
  for (const char c : std::string(kLeast)) {
    absl::StrAppend(&little, std::string(1, c), nul);
    absl::StrAppend(&big, nul, std::string(1, c));
  }
  for (const std::string& utf16 : {little, big, "\xff\xfe" + little, "\xfe\xff" + big}) {
    EXPECT_TRUE(ParseJobFile(utf16, "job.yaml", "/jobs").ok());
  }
}

}  // namespace
}  // namespace hooke
