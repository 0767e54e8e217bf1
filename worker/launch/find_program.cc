#include "worker/launch/find_program.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hooke {

namespace fs = std::filesystem;

bool IsProgram(const std::string& path) {
  std::error_code error;
  return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, error);
}

std::string FindProgram(const std::vector<std::string>& names, absl::string_view path) {
  for (const std::string& name : names) {
    for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
      std::string file = absl::StrCat(folder, "/", name);
      if (IsProgram(file)) return file;
    }
  }
  return "";
}

std::string InRealFolder(const std::string& path) {
  if (path.find('/') == std::string::npos) return path;
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(path, error).parent_path(), error);
  return error ? path : (folder / fs::path(path).filename()).string();
}

}  // namespace hooke
