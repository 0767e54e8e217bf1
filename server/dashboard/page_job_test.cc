#include "server/dashboard/page_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job_refusal.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ErrorOf(absl::string_view text) { return std::string(ReadPageJob(text, "").status().message()); }

// A faulty file has the messages of `hooke submit`, with lines. What is on the reader's disk is refused by name.
TEST(PageJobTest, SaysWhereTheFaultsAre) {
  EXPECT_THAT(ErrorOf("name: a\nmodle: mlp\n"), HasSubstr("job.yaml:2: modle: unknown key;"));
  EXPECT_THAT(ErrorOf("name: [a\n"), StartsWith("job.yaml:"));
  EXPECT_THAT(ErrorOf("name: a\ncommand: [python3, t.py]\nfiles: [t.py]\n"),
              StartsWith("job.yaml:3: files: 1 path names files on your disk, which the web page cannot send: submit "
                         "this job with `hooke submit`"));
  EXPECT_THAT(std::string(ReadPageJob("name: <b>\n", "my<script>.yaml").status().message()),
              StartsWith("my<script>.yaml:1: "));
}

// The page must not make the coordinator read its own files.
TEST(PageJobTest, ReadsNoFileOfThisMachine) {
  EXPECT_THAT(ErrorOf("name: a\ncommand: [true]\ndirectory: /\ncollectives: {tuning: /etc/passwd}\n"),
              StartsWith("job.yaml:4: collectives.tuning: /etc/passwd cannot be read by the web page"));
}

// A refusal of the coordinator that names a key gets the key's line.
TEST(PageJobTest, RefusalsHaveLines) {
  const absl::StatusOr<JobFile> file = ReadPageJob("name: a\nmodel: mlp\ndata:\n  train: /d\n  test: /t\n", "my.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(PageRefusal(*file, RefusalOf({{"data.test", "is refused", {}}})).message(),
            "my.yaml:5: data.test: is refused");
  const absl::Status other = absl::FailedPreconditionError("no room");
  EXPECT_EQ(PageRefusal(*file, other), other);
}

}  // namespace
}  // namespace hooke
