#include "server/journal/job_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

class JobLogTest : public testing::Test {
 protected:
  JobLogTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
  }
  ~JobLogTest() override { std::filesystem::remove_all(folder_); }

  JobLog Open(uint64_t bytes_max = 1 << 20) { return *JobLog::Open({folder_, bytes_max}); }

  const std::string folder_;
};

// A reader can continue at any offset that Read returned, also after the log was opened again.
TEST_F(JobLogTest, ReadsOnFromWhereItWas) {
  JobLog log = Open();
  EXPECT_EQ(log.Read("a-1", 0, 100)->text, "");
  ASSERT_TRUE(log.Append("a-1", {"one", "two"}).ok());
  const LogText first = *log.Read("a-1", 0, 100);
  EXPECT_EQ(first.text, "one\ntwo\n");
  EXPECT_EQ(log.Read("a-1", first.next_offset, 100)->text, "");
  ASSERT_TRUE(Open().Append("a-1", {"three"}).ok());
  EXPECT_EQ(log.Read("a-1", first.next_offset, 100)->text, "three\n");
  EXPECT_EQ(log.Read("b-2", 0, 100)->text, "");
}

// The end of a log is read without its beginning, in whole lines. A reader goes on from there.
TEST_F(JobLogTest, ReadsTheEnd) {
  JobLog log = Open();
  EXPECT_EQ(log.ReadEnd("a-1", 10)->text, "");
  for (int i = 1000; i < 2000; ++i) ASSERT_TRUE(log.Append("a-1", {absl::StrCat(i)}).ok());
  const LogText end = *log.ReadEnd("a-1", 17);
  EXPECT_EQ(end.text, "1997\n1998\n1999\n");
  EXPECT_EQ(end.next_offset, 5000u);
  EXPECT_EQ(log.ReadEnd("a-1", 15)->text, end.text);
  EXPECT_EQ(log.ReadEnd("a-1", 14)->text, "1998\n1999\n");
  EXPECT_EQ(log.ReadEnd("a-1", 5000)->text.size(), 5000u);
  EXPECT_EQ(log.ReadEnd("a-1", 3)->text, "");
}

// A log that is at its bound gets a line that says so, once. After that it keeps the coordinator's own lines, up to
// their bound.
TEST_F(JobLogTest, SaysThatItWasCut) {
  const std::string cut = "(this log has reached 10 bytes: from here on, only the coordinator's own lines are kept)\n";
  const auto open = [this, &cut] { return *JobLog::Open({folder_, 10, cut.size() + 12}); };
  JobLog log = open();
  ASSERT_TRUE(log.Append("a-1", {"12345", "67890", "more", {"ended", true}}).ok());
  ASSERT_TRUE(log.Append("a-1", {"still more"}).ok());
  ASSERT_TRUE(open().Append("a-1", {"and more", {"again", true}, {"and again", true}}).ok());
  EXPECT_EQ(log.Read("a-1", 0, 1000)->text, absl::StrCat("12345\n67890\n", cut, "ended\nagain\n"));
}

// Readers get whole lines, whatever the size of their buffer. Line ends inside a line become spaces, and overlong lines
// are cut.
TEST_F(JobLogTest, KeepsLinesWhole) {
  JobLog log = Open();
  ASSERT_TRUE(log.Append("a-1", {"a\nb", std::string(3 * JobLog::kLineBytesMax, 'x')}).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(log.Append("a-1", {std::string(5000, 'y')}).ok());
  uint64_t offset = 0;
  std::string all;
  while (true) {
    const LogText text = *log.Read("a-1", offset, 1);
    if (text.text.empty()) break;
    EXPECT_TRUE(absl::EndsWith(text.text, "\n"));
    all += text.text;
    offset = text.next_offset;
  }
  EXPECT_EQ(all.substr(0, 4), "a b\n");
  EXPECT_EQ(all.size(), 4 + JobLog::kLineBytesMax + 1 + size_t{10} * 5001);
}

// An offset beyond the end is an error. So is a folder that cannot be created, and the message names it.
TEST_F(JobLogTest, NamesWhatIsWrong) {
  JobLog log = Open();
  ASSERT_TRUE(log.Append("a-1", {"one"}).ok());
  EXPECT_EQ(log.Read("a-1", 5, 100).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(log.Read("b-2", 5, 100).status().code(), absl::StatusCode::kOutOfRange);
  const absl::Status status = JobLog::Open({folder_ + "/a-1.log/logs"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(folder_ + "/a-1.log/logs"));
}

// The highest number of a job that has a log is found. Other files, and numbers that no coordinator gives, do not
// count.
TEST_F(JobLogTest, FindsTheHighestNumber) {
  JobLog log = Open();
  EXPECT_EQ(*log.HighestNumber(), 0u);
  for (const char* id : {"a-1", "a-b-12", "c-7", "no-number", "13", "a-99999999999999999999", "a--5x"}) {
    ASSERT_TRUE(log.Append(id, {"one"}).ok());
  }
  std::ofstream(folder_ + "/a-50.txt") << "x";
  EXPECT_EQ(*log.HighestNumber(), 12u);
}

// A removed log reads as empty, and a new one can begin. Removing a log that does not exist is no error.
TEST_F(JobLogTest, Removes) {
  JobLog log = Open();
  ASSERT_TRUE(log.Append("a-1", {"one"}).ok());
  EXPECT_TRUE(log.Remove("a-1").ok());
  EXPECT_TRUE(log.Remove("a-1").ok());
  EXPECT_EQ(log.Read("a-1", 0, 100)->text, "");
  ASSERT_TRUE(log.Append("a-1", {"two"}).ok());
  EXPECT_EQ(log.Read("a-1", 0, 100)->text, "two\n");
}

// A line begins with its time, in UTC, to the millisecond.
TEST_F(JobLogTest, LinesBeginWithTheirTime) {
  EXPECT_EQ(LogLine(absl::FromUnixMillis(1500), "coordinator hello"), "1970-01-01T00:00:01.500Z coordinator hello");
}

}  // namespace
}  // namespace hooke
