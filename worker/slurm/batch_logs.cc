#include "worker/slurm/batch_logs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr std::streamoff kTailBytes = 64 << 10;
constexpr char kStart[] = "slurm-";  // A log is named "slurm-4211.log", by the batch job's number.
constexpr char kEnd[] = ".log";

// A character of UTF-8 has at most this many bytes 10xxxxxx, all after its first byte. More of them are no UTF-8.
constexpr int kInsideMax = 3;

bool IsInside(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns the id of the batch job whose log has this name; "" if it is not the name of a log.
std::string IdOfLog(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kStart) || !absl::ConsumeSuffix(&name, kEnd)) return "";
  const bool number = std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isdigit(c); });
  return number ? std::string(name) : "";
}

}  // namespace

std::string EscapedStart(absl::string_view text, size_t bytes_max) { return Escaped(FirstBytes(text, bytes_max)); }

std::string EscapedEnd(absl::string_view text, size_t bytes_max) {
  size_t start = text.size() - std::min(text.size(), bytes_max);
  for (int i = 0; i < kInsideMax && start > 0 && start < text.size() && IsInside(text[start]); ++i) ++start;
  return Escaped(text.substr(start));
}

std::string BatchLogPath(const std::string& folder, const std::string& id) {
  return absl::StrCat(folder, "/", kStart, id, kEnd);
}

std::string LastLine(const std::string& path, absl::string_view start) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kTailBytes));
  const std::string tail((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string last;
  for (const absl::string_view line : absl::StrSplit(tail, '\n')) {
    if (!line.empty() && absl::StartsWith(line, start)) last = std::string(line);
  }
  return last;
}

void KeepNewestLogs(const std::string& folder, size_t count, const std::function<bool(const std::string& id)>& in_use) {
  std::vector<std::pair<fs::file_time_type, fs::path>> logs;
  size_t all = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string id = IdOfLog(it->path().filename().string());
    if (id.empty()) continue;
    ++all;
    std::error_code no_time;
    const fs::file_time_type written = it->last_write_time(no_time);
    if (!no_time && !in_use(id)) logs.emplace_back(written, it->path());
  }
  std::sort(logs.begin(), logs.end());
  for (size_t i = 0; i < logs.size() && all > count; ++i, --all) fs::remove(logs[i].second, error);
}

}  // namespace hooke
