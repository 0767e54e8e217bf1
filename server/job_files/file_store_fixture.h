#ifndef HOOKE_SERVER_JOB_FILES_FILE_STORE_FIXTURE_H_
#define HOOKE_SERVER_JOB_FILES_FILE_STORE_FIXTURE_H_

// The fixture of FileStore's tests: a store in a folder of its own, and jobs' files of a few bytes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "job/file_manifest.h"
#include "server/job_files/file_store.h"
#include "wire/file_chunks.h"

namespace hooke {

inline constexpr absl::Duration kNow = absl::Hours(1);

inline v1::FileContent Content(const std::string& bytes) {
  v1::FileContent content;
  content.set_sha256(Sha256Of(bytes));
  content.set_bytes(bytes.size());
  return content;
}

// A job's files. The path of each file is its content, cut to 100 bytes.
struct Files {
  explicit Files(const std::vector<std::string>& all) : bytes(all) {
    v1::FileManifest made;
    for (const std::string& one : all) {
      v1::FileEntry& entry = *made.add_entries();
      entry.set_path(one.substr(0, 100));
      entry.set_sha256(Sha256Of(one));
      entry.set_bytes(one.size());
    }
    set = FileSetOf(made);
    manifest = ManifestBytes(made);
  }

  std::vector<v1::FileContent> Contents() const {
    std::vector<v1::FileContent> contents = {Content(manifest)};
    for (const std::string& one : bytes) contents.push_back(Content(one));
    return contents;
  }

  std::vector<std::string> bytes;
  v1::FileSet set;
  std::string manifest;
};

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() : folder_(absl::StrCat(testing::TempDir(), "/store-", getpid())) {
    std::filesystem::remove_all(folder_);
    Open({});
  }
  ~FileStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Open(FileStoreOptions options) {
    store_.reset();
    options.folder = folder_;
    absl::StatusOr<std::unique_ptr<FileStore>> store = FileStore::Open(std::move(options), kNow);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  absl::Status Upload(const std::vector<std::string>& contents, absl::Duration now = kNow) {
    absl::StatusOr<std::unique_ptr<FileStore::Upload>> upload = store_->BeginUpload(now);
    if (!upload.ok()) return upload.status();
    for (const std::string& bytes : contents) {
      absl::Status status = SendContent(bytes, [&](const v1::FileChunk& chunk) { return (*upload)->Take(chunk, now); });
      if (!status.ok()) return status;
    }
    return (*upload)->Finish().status();
  }
  absl::Status Upload(const Files& files, absl::Duration now = kNow) {
    std::vector<std::string> contents = files.bytes;
    contents.push_back(files.manifest);
    return Upload(contents, now);
  }

  size_t FilesThere() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }
  std::string PathOf(const std::string& bytes) const {
    return absl::StrCat(folder_, "/", absl::BytesToHexString(Sha256Of(bytes)));
  }

  const std::string folder_;
  std::unique_ptr<FileStore> store_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_JOB_FILES_FILE_STORE_FIXTURE_H_
