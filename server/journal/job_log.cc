#include "server/journal/job_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/records/records.h"

namespace hooke {
namespace {

absl::Status FileError(absl::string_view doing, absl::string_view path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  const std::string text = absl::StrCat("cannot ", doing, " ", path, ": ", std::strerror(errno));
  return full ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

absl::Status WriteAll(int file, absl::string_view path, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", path);
    text.remove_prefix(written);
  }
  return absl::OkStatus();
}

// Cuts `line` to its limit, replaces line ends inside it and appends one.
std::string OneLine(absl::string_view line) {
  std::string text(line.substr(0, JobLog::kLineBytesMax));
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.push_back('\n');
  return text;
}

}  // namespace

absl::StatusOr<JobLog> JobLog::Open(JobLogOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return absl::InternalError(absl::StrCat("cannot make folder ", options.folder, ": ", error.message()));
  return JobLog(std::move(options));
}

std::string JobLog::PathOf(absl::string_view job_id) const {
  return absl::StrCat(options_.folder, "/", job_id, ".log");
}

absl::Status JobLog::Append(absl::string_view job_id, absl::Span<const Line> lines) {
  const std::string path = PathOf(job_id);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return FileError("open", path);
  auto closer = absl::MakeCleanup([file] { close(file); });
  struct stat info;
  if (fstat(file, &info) != 0) return FileError("look at", path);
  uint64_t bytes = info.st_size;
  std::string text;
  for (const Line& line : lines) {
    // A file that has reached its bound already has the line that says so.
    if (bytes >= options_.bytes_max + (line.ours ? options_.own_bytes_max : 0)) continue;
    const bool whole = bytes < options_.bytes_max;
    const std::string one = OneLine(line.text);
    absl::StrAppend(&text, one);
    bytes += one.size();
    if (whole && bytes >= options_.bytes_max) {
      const std::string cut = absl::StrCat("(this log has reached ", options_.bytes_max,
                                           " bytes: from here on, only the coordinator's own lines are kept)\n");
      absl::StrAppend(&text, cut);
      bytes += cut.size();
    }
  }
  return WriteAll(file, path, text);
}

absl::StatusOr<LogText> JobLog::Read(absl::string_view job_id, uint64_t offset, uint64_t bytes_max) const {
  const std::string path = PathOf(job_id);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT && offset == 0) return LogText{"", 0};
  if (file < 0 && errno != ENOENT) return FileError("open", path);
  auto closer = absl::MakeCleanup([file] { close(file); });
  struct stat info = {};
  if (file >= 0 && fstat(file, &info) != 0) return FileError("look at", path);
  const uint64_t size = info.st_size;
  if (offset > size) {
    return absl::OutOfRangeError(
        absl::StrCat("offset ", offset, " is beyond the end of the log of ", job_id, ", ", size, " bytes"));
  }
  // A line has at most kLineBytesMax + 1 bytes, so this buffer holds a whole line wherever `offset` lies.
  std::string text(std::min<uint64_t>(size - offset, std::max<uint64_t>(bytes_max, 2 * kLineBytesMax)), '\0');
  size_t read = 0;
  while (read < text.size()) {
    const ssize_t got = pread(file, text.data() + read, text.size() - read, offset + read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path);
    if (got == 0) break;
    read += got;
  }
  text.resize(read);
  const size_t last = text.rfind('\n');
  text.resize(last == std::string::npos ? 0 : last + 1);
  return LogText{text, offset + text.size()};
}

absl::StatusOr<LogText> JobLog::ReadEnd(absl::string_view job_id, uint64_t bytes_max) const {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(PathOf(job_id), error);
  // A missing log reads as empty, and Read says what else is wrong.
  if (error || size <= bytes_max) return Read(job_id, 0, bytes_max);
  // One byte more, so that a line that begins just at the limit is seen to be whole.
  absl::StatusOr<LogText> end = Read(job_id, size - bytes_max - 1, bytes_max + 1);
  if (end.ok()) end->text.erase(0, std::min(end->text.find('\n') + 1, end->text.size()));
  return end;
}

absl::Status JobLog::Remove(absl::string_view job_id) {
  const std::string path = PathOf(job_id);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return FileError("remove", path);
}

absl::StatusOr<uint64_t> JobLog::HighestNumber() const {
  uint64_t highest = 0;
  std::error_code error;
  std::filesystem::directory_iterator file(options_.folder, error);
  for (; !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    if (file->path().extension() == ".log") highest = std::max(highest, JobNumberOf(file->path().stem().string()));
  }
  if (error) return absl::InternalError(absl::StrCat("cannot read folder ", options_.folder, ": ", error.message()));
  return highest;
}

std::string LogLine(absl::Time now, absl::string_view source_and_text) {
  return absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", now, absl::UTCTimeZone()), " ", source_and_text);
}

}  // namespace hooke
