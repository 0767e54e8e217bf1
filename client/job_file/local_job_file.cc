#include "client/job_file/local_job_file.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/job_file/read_text.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

class LocalFolder final : public JobFolder {
 public:
  explicit LocalFolder(absl::string_view path) : path_(path) {}

  std::string path() const override { return path_; }

  absl::StatusOr<std::string> ReadJson(const std::string& path) override { return ReadJsonFile(path); }

  absl::StatusOr<v1::FileSet> Collect(const std::vector<std::string>& paths) override {
    absl::StatusOr<CollectedFiles> files = CollectFiles(path_, paths);
    if (!files.ok()) return files.status();
    files_ = *std::move(files);
    return files_.set;
  }

  CollectedFiles TakeFiles() { return std::move(files_); }

 private:
  const std::string path_;
  CollectedFiles files_;
};

}  // namespace

absl::StatusOr<LocalJobFile> ParseJobFile(absl::string_view text, absl::string_view file, absl::string_view folder) {
  LocalFolder local(folder);
  absl::StatusOr<JobFile> read = ParseJobText(text, file, local);
  if (!read.ok()) return read.status();
  return LocalJobFile{*std::move(read), local.TakeFiles()};
}

absl::StatusOr<LocalJobFile> ReadJobFile(const std::string& path) {
  constexpr char kWhat[] = "name a job file (docs/job-file.md says what is in one)";
  const std::string name = Escaped(path);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return absl::NotFoundError(absl::StrCat(name, ": no such file; ", kWhat));
  if (std::filesystem::is_directory(status)) {
    return absl::FailedPreconditionError(absl::StrCat(name, ": is a folder; ", kWhat));
  }
  const absl::StatusOr<std::string> text = ReadStart(path, kJobFileBytesMax);
  if (!text.ok()) return absl::FailedPreconditionError(absl::StrCat(name, ": ", text.status().message()));
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  return ParseJobFile(*text, path, folder.string());
}

}  // namespace hooke
