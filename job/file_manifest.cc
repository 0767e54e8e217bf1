#include "job/file_manifest.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "job/visible_text.h"
#include "wire/sha256.h"

namespace hooke {
namespace {

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status CheckEntry(const v1::FileEntry& entry) {
  if (absl::Status path = CheckFilePath(entry.path()); !path.ok()) return path;
  if (entry.folder()) {
    if (entry.sha256().empty() && entry.bytes() == 0 && !entry.executable()) return absl::OkStatus();
    return Wrong("is a folder with a content");
  }
  if (entry.sha256().size() != kSha256Bytes) return Wrong("has a SHA-256 that does not have 32 bytes");
  return entry.bytes() <= kFileBytesMax ? absl::OkStatus() : Wrong("is too large");
}

}  // namespace

absl::Status CheckFilePath(absl::string_view path) {
  if (path.empty()) return Wrong("is empty");
  if (path.size() > kFilePathBytesMax) return Wrong(absl::StrCat("has more than ", kFilePathBytesMax, " bytes"));
  if (!IsVisibleText(path)) return Wrong("is not UTF-8 without control characters");
  if (path.front() == '/') return Wrong("is not a relative path");
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty()) return Wrong("has an empty part");
    if (part == "." || part == "..") return Wrong(absl::StrCat("has a part \"", part, "\""));
    if (part.size() > kFileNameBytesMax) {
      return Wrong(absl::StrCat("has a part of more than ", kFileNameBytesMax, " bytes"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckManifest(const v1::FileManifest& manifest) {
  if (manifest.entries().empty()) return Wrong("it names no file");
  if (manifest.entries_size() > static_cast<int>(kFilesMax)) {
    return Wrong(absl::StrCat("it names ", manifest.entries_size(), " files, and at most ", kFilesMax, " are allowed"));
  }
  std::set<std::string> files;
  std::map<std::string, uint64_t> sizes;  // By digest.
  uint64_t bytes = 0;
  std::string before;
  for (const v1::FileEntry& entry : manifest.entries()) {
    const auto wrong = [&entry](absl::string_view what) {
      return Wrong(absl::StrCat(Quoted(entry.path()), " ", what));
    };
    if (absl::Status status = CheckEntry(entry); !status.ok()) return wrong(status.message());
    if (entry.path() <= before) return wrong(entry.path() == before ? "is named twice" : "is out of order");
    before = entry.path();
    for (size_t slash = before.find('/'); slash != before.npos; slash = before.find('/', slash + 1)) {
      if (files.count(before.substr(0, slash)) > 0) return wrong("lies in a file");
    }
    // A folder with an entry is empty, so nothing may lie in it, either.
    files.insert(before);
    if (entry.folder()) continue;
    if (!sizes.emplace(entry.sha256(), entry.bytes()).second && sizes[entry.sha256()] != entry.bytes()) {
      return wrong("has the SHA-256 of a file of another size");
    }
    bytes += entry.bytes();
    if (bytes > kFileBytesMax) return wrong("makes the files too large");
  }
  return absl::OkStatus();
}

std::string ManifestBytes(const v1::FileManifest& manifest) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::CodedOutputStream coded(&out);
    coded.SetSerializationDeterministic(true);
    manifest.SerializeToCodedStream(&coded);
  }
  return bytes;
}

v1::FileSet FileSetOf(const v1::FileManifest& manifest) {
  const std::string bytes = ManifestBytes(manifest);
  v1::FileSet set;
  set.set_manifest_sha256(Sha256Of(bytes));
  set.set_manifest_bytes(bytes.size());
  for (const v1::FileEntry& entry : manifest.entries()) {
    set.set_files(set.files() + (entry.folder() ? 0 : 1));
    set.set_bytes(set.bytes() + entry.bytes());
  }
  return set;
}

absl::Status CheckFileSet(const v1::FileSet& set) {
  if (set.manifest_sha256().size() != kSha256Bytes)
    return Wrong("the SHA-256 of their manifest does not have 32 bytes");
  if (set.manifest_bytes() < 1 || set.manifest_bytes() > kManifestBytesMax) {
    return Wrong(
        absl::StrCat("their manifest has ", set.manifest_bytes(), " bytes; allowed are 1 to ", kManifestBytesMax));
  }
  if (set.files() > kFilesMax) {
    return Wrong(absl::StrCat("these are ", set.files(), " files; at most ", kFilesMax, " are allowed"));
  }
  return set.bytes() <= kFileBytesMax ? absl::OkStatus() : Wrong("they are too large");
}

absl::StatusOr<v1::FileManifest> ReadManifest(const v1::FileSet& set, absl::string_view bytes) {
  if (absl::Status status = CheckFileSet(set); !status.ok()) return status;
  if (bytes.size() != set.manifest_bytes() || Sha256Of(bytes) != set.manifest_sha256()) {
    return Wrong("the manifest of the files is another one than the job says");
  }
  v1::FileManifest manifest;
  if (!manifest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Wrong("the manifest of the files is no message FileManifest");
  }
  if (absl::Status status = CheckManifest(manifest); !status.ok()) {
    return Wrong(absl::StrCat("the manifest of the files: ", status.message()));
  }
  const v1::FileSet is = FileSetOf(manifest);
  if (is.files() == set.files() && is.bytes() == set.bytes()) return manifest;
  return Wrong(absl::StrCat("the manifest names ", FilesText(is), "; the job says ", FilesText(set)));
}

std::vector<v1::FileContent> ContentsOf(const v1::FileManifest& manifest) {
  std::vector<v1::FileContent> contents;
  std::set<std::string> seen;
  for (const v1::FileEntry& entry : manifest.entries()) {
    if (entry.folder() || !seen.insert(entry.sha256()).second) continue;
    contents.emplace_back();
    contents.back().set_sha256(entry.sha256());
    contents.back().set_bytes(entry.bytes());
  }
  return contents;
}

v1::FileContent ManifestContent(const v1::FileSet& set) {
  v1::FileContent content;
  content.set_sha256(set.manifest_sha256());
  content.set_bytes(set.manifest_bytes());
  return content;
}

absl::Duration UploadLimit(const v1::FileSet& set) {
  constexpr double kBytesPerSecond = 1 << 20;  // A slow line, on which an upload still makes sense.
  return absl::Minutes(1) + absl::Seconds(static_cast<double>(set.bytes() + set.manifest_bytes()) / kBytesPerSecond);
}

PartLimits PartLimitsOf(const v1::CommandSpec& command) {
  // Without files a worker needs only some milliseconds.
  constexpr absl::Duration kReady = absl::Seconds(15);
  // A part waits longer than the coordinator. So the coordinator, which knows which part is late, gives up first.
  constexpr absl::Duration kMargin = absl::Seconds(45);
  // 2000 workers that fetch 1 GiB each over one line of 1 Gbit/s take less than five hours.
  constexpr absl::Duration kFiles = absl::Hours(6);
  const absl::Duration ready = command.has_files() ? kReady + kFiles : kReady;
  return {ready, ready + kMargin};
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FilesText(const v1::FileSet& set) {
  return absl::StrCat(set.files(), set.files() == 1 ? " file, " : " files, ", BytesText(set.bytes()));
}

}  // namespace hooke
