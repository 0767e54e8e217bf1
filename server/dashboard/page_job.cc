#include "server/dashboard/page_job.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_refusal.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

constexpr size_t kNameBytesMax = 255;

class PageFolder final : public JobFolder {
 public:
  std::string path() const override { return ""; }

  absl::StatusOr<std::string> ReadJson(const std::string& path) override {
    return absl::FailedPreconditionError(
        absl::StrCat(Escaped(path), " cannot be read by the web page: submit this job with `hooke submit`"));
  }

  absl::StatusOr<v1::FileSet> Collect(const std::vector<std::string>& paths) override {
    return absl::FailedPreconditionError(absl::StrCat(
        paths.size(), paths.size() == 1 ? " path names" : " paths name",
        " files on your disk, which the web page cannot send: submit this job with `hooke submit`, or put the files on "
        "the workers' nodes and name their folder in `directory`"));
  }
};

}  // namespace

absl::StatusOr<JobFile> ReadPageJob(absl::string_view text, absl::string_view name) {
  PageFolder folder;
  return ParseJobText(text, name.empty() ? "job.yaml" : name.substr(0, kNameBytesMax), folder);
}

absl::Status PageRefusal(const JobFile& file, const absl::Status& status) {
  const Refusal refusal = ReadRefusal(status);
  return refusal.problems.empty() ? status : absl::InvalidArgumentError(RefusalText(file, refusal));
}

}  // namespace hooke
