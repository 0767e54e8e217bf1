// A job file that lies in no folder, such as one that was pasted into a web page. client/job_file tests the rest.

#include "job/yaml/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

class NoFolder final : public JobFolder {
 public:
  std::string path() const override { return ""; }
  absl::StatusOr<std::string> ReadJson(const std::string& path) override {
    return absl::FailedPreconditionError(path + " is out of reach");
  }
  absl::StatusOr<v1::FileSet> Collect(const std::vector<std::string>& paths) override {
    return absl::FailedPreconditionError(paths[0] + " is out of reach");
  }
};

std::string ErrorOf(absl::string_view text) {
  NoFolder folder;
  return std::string(ParseJobText(text, "job.yaml", folder).status().message());
}

// A job file that names no other files needs no folder. It gets its defaults as ever.
TEST(JobTextTest, NeedsNoFolder) {
  NoFolder folder;
  const absl::StatusOr<JobFile> file =
      ParseJobText("name: a\nmodel: mlp\ndata: {train: /d/train, test: /d/t10k}\n", "job.yaml", folder);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->spec.data().train(), "/d/train");
  EXPECT_EQ(file->spec.groups().count(), 1u);
  EXPECT_EQ(file->lines.at("data.test"), 3);
}

// Each thing that only a folder could tell is a problem at its line.
TEST(JobTextTest, NamesWhatOnlyAFolderHas) {
  EXPECT_EQ(ErrorOf("name: a\nmodel: mlp\ndata: {train: train, test: /d/t10k}\n"),
            "job.yaml:3: data.train: \"train\" is a relative path; this job comes from no folder, so write an absolute "
            "path that is right on the workers' nodes");
  EXPECT_EQ(ErrorOf("name: a\n\ncommand: [python3, train.py]\n"),
            "job.yaml:3: directory: is missing; this job comes from no folder, so write an absolute path that is right "
            "on the workers' nodes");
  EXPECT_EQ(ErrorOf("name: a\ncommand: [python3, train.py]\nfiles: [train.py]\n"),
            "job.yaml:3: files: train.py is out of reach");
  EXPECT_THAT(ErrorOf("name: a\ncommand: [true]\ndirectory: /tmp\ncollectives: {tuning: /t.json}\n"),
              testing::StartsWith("job.yaml:4: collectives.tuning: /t.json is out of reach; must be"));
}

}  // namespace
}  // namespace hooke
