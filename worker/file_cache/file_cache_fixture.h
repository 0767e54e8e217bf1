#ifndef HOOKE_WORKER_FILE_CACHE_FILE_CACHE_FIXTURE_H_
#define HOOKE_WORKER_FILE_CACHE_FILE_CACHE_FIXTURE_H_

// The fixture of FileCache's tests: a cache in a folder of its own, and a coordinator that has the files of all jobs.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "job/file_manifest.h"
#include "wire/file_chunks.h"
#include "worker/file_cache/file_cache.h"

namespace hooke {

inline absl::Status GoOn() { return absl::OkStatus(); }

// A coordinator that has the files of all jobs of a test.
class Source {
 public:
  // Adds a job with these files: path to content. A path that ends in "*" is executable, one in "/" is a folder.
  v1::FileSet Add(const std::map<std::string, std::string>& files) {
    v1::FileManifest manifest;
    for (const auto& [path, bytes] : files) {
      v1::FileEntry& entry = *manifest.add_entries();
      entry.set_path(path.substr(0, path.find_first_of("*/", path.size() - 1)));
      entry.set_executable(path.back() == '*');
      entry.set_folder(path.back() == '/');
      if (entry.folder()) continue;
      entry.set_sha256(Sha256Of(bytes));
      entry.set_bytes(bytes.size());
      contents_[entry.sha256()] = bytes;
    }
    v1::FileSet set = FileSetOf(manifest);
    contents_[set.manifest_sha256()] = ManifestBytes(manifest);
    return set;
  }

  FetchContents Fetch() {
    return
        [this](const std::vector<std::string>& sha256, const std::function<absl::Status(const v1::FileChunk&)>& take) {
          for (const std::string& digest : sha256) {
            absl::MutexLock lock(&mutex_);
            fetched_ += contents_.at(digest).size();
            if (absl::Status status = SendContent(contents_.at(digest), take); !status.ok()) return status;
          }
          return absl::OkStatus();
        };
  }

  // Bytes fetched since the last call.
  uint64_t TakeFetched() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(fetched_, 0);
  }

 private:
  std::map<std::string, std::string> contents_;
  absl::Mutex mutex_;
  uint64_t fetched_ = 0;
};

class FileCacheTest : public ::testing::Test {
 protected:
  FileCacheTest() : folder_(absl::StrCat(testing::TempDir(), "/cache-", getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Open(1 << 20);
  }
  ~FileCacheTest() override {
    cache_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Open(uint64_t bytes_max, std::function<absl::Time()> clock = SteadyTime) {
    cache_.reset();
    absl::StatusOr<std::unique_ptr<FileCache>> cache = FileCache::Open(folder_ + "/files", bytes_max, std::move(clock));
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  absl::StatusOr<FileCache::Made> Make(const v1::FileSet& set, const std::string& name) {
    return cache_->Make(set, Into(name), source_.Fetch(), GoOn);
  }
  std::string Into(const std::string& name) const { return folder_ + "/" + name; }
  std::string CachedPath(const std::string& bytes) const {
    return absl::StrCat(folder_, "/files/", absl::BytesToHexString(Sha256Of(bytes)));
  }
  static std::string Text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static mode_t Mode(const std::string& path) {
    struct stat info = {};
    stat(path.c_str(), &info);
    return info.st_mode & 0777;
  }

  const std::string folder_;
  Source source_;
  std::unique_ptr<FileCache> cache_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_FILE_CACHE_FIXTURE_H_
