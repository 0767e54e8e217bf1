#include "server/journal/profile_store.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/journal/profile_file.h"
#include "server/records/records.h"

namespace hooke {
namespace {

std::string FileName(const ProfileKey& key) { return absl::StrCat(key.group, "-", key.rank); }

std::optional<ProfileKey> KeyOf(const std::string& job_id, const std::string& file_name) {
  ProfileKey key;
  key.job_id = job_id;
  const std::vector<std::string> parts = absl::StrSplit(file_name, '-');
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &key.group) || !absl::SimpleAtoi(parts[1], &key.rank) ||
      FileName(key) != file_name) {
    return std::nullopt;
  }
  return key;
}

}  // namespace

absl::StatusOr<ProfileStore> ProfileStore::Open(ProfileStoreOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return absl::InternalError(absl::StrCat("cannot make folder ", options.folder, ": ", error.message()));
  ProfileStore store(std::move(options));
  if (absl::Status status = store.LoadSizes(); !status.ok()) return status;
  return store;
}

absl::Status ProfileStore::LoadSizes() {
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(options_.folder, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    const std::string job_id = entry->path().parent_path().filename();
    const uint64_t number = JobNumberOf(job_id);
    if (entry.depth() != 1 || number == 0) continue;
    const uint64_t bytes = entry->file_size(error);
    if (error) break;
    Job& job = jobs_[number];
    job.id = job_id;
    job.files[entry->path().filename()].bytes = bytes;
    job.bytes += bytes;
    bytes_ += bytes;
  }
  if (error) return absl::InternalError(absl::StrCat("cannot read folder ", options_.folder, ": ", error.message()));
  return absl::OkStatus();
}

std::string ProfileStore::FolderOf(const std::string& job_id) const {
  return absl::StrCat(options_.folder, "/", job_id);
}

absl::Status ProfileStore::Put(const ProfileKey& key, absl::string_view profile) {
  const uint64_t number = JobNumberOf(key.job_id);
  Job& job = jobs_[number];
  job.id = key.job_id;
  File& file = job.files[FileName(key)];
  // A file that is overwritten does not shrink.
  const uint64_t bytes = std::max(file.is_ours ? file.bytes : 0, kProfileFileHeaderBytes + profile.size());
  if (job.bytes - file.bytes + bytes > options_.job_bytes_max) {
    if (file.bytes == 0) job.files.erase(FileName(key));
    return absl::ResourceExhaustedError(absl::StrCat("the profiles of ", key.job_id, " take more than ",
                                                     options_.job_bytes_max, " bytes: that of group ", key.group,
                                                     " rank ", key.rank, " is not kept"));
  }
  bytes_ += bytes - file.bytes;
  job.bytes += bytes - file.bytes;
  file.bytes = bytes;
  MakeRoom(number);
  return Write(key, profile, file);
}

absl::Status ProfileStore::Write(const ProfileKey& key, absl::string_view profile, File& file) {
  const std::string path = absl::StrCat(FolderOf(key.job_id), "/", FileName(key));
  if (file.is_ours) {
    absl::Status overwritten = OverwriteProfileFile(path, profile);
    if (!absl::IsNotFound(overwritten)) return overwritten;
  }
  std::error_code ignored;  // If the folder cannot be made, CreateProfileFile fails and says why.
  std::filesystem::create_directory(FolderOf(key.job_id), ignored);
  absl::Status created = CreateProfileFile(path, profile);
  file.is_ours = created.ok();
  return created;
}

void ProfileStore::MakeRoom(uint64_t for_number) {
  for (auto job = jobs_.begin(); job != jobs_.end() && bytes_ > options_.all_bytes_max;) {
    if (job->first == for_number) {
      ++job;
      continue;
    }
    std::error_code ignored;
    std::filesystem::remove_all(FolderOf(job->second.id), ignored);
    bytes_ -= job->second.bytes;
    job = jobs_.erase(job);
  }
}

absl::Status ProfileStore::Remove(const std::string& job_id) {
  const auto job = jobs_.find(JobNumberOf(job_id));
  if (job == jobs_.end() || job->second.id != job_id) return absl::OkStatus();
  std::error_code error;
  std::filesystem::remove_all(FolderOf(job_id), error);
  if (error) return absl::InternalError(absl::StrCat("cannot remove ", FolderOf(job_id), ": ", error.message()));
  bytes_ -= job->second.bytes;
  jobs_.erase(job);
  return absl::OkStatus();
}

std::vector<ProfileKey> ProfileStore::List(const std::string& job_id) const {
  std::vector<ProfileKey> keys;
  std::error_code error;
  std::filesystem::directory_iterator file(FolderOf(job_id), error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    const std::optional<ProfileKey> key = KeyOf(job_id, file->path().filename());
    if (key.has_value()) keys.push_back(*key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::StatusOr<v1::RankProfile> ProfileStore::Read(const ProfileKey& key) const {
  const std::string path = absl::StrCat(FolderOf(key.job_id), "/", FileName(key));
  const absl::StatusOr<std::string> bytes = ReadProfileFile(path);
  if (!bytes.ok()) return bytes.status();
  v1::RankProfile profile;
  if (!profile.ParseFromString(*bytes)) {
    return absl::DataLossError(absl::StrCat("the profile ", path, " is damaged: remove that file"));
  }
  return profile;
}

}  // namespace hooke
