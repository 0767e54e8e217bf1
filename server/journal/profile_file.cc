#include "server/journal/profile_file.h"

#include <zlib.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "files/whole_file.h"

namespace hooke {
namespace {

constexpr char kMagic[] = {'\0', 'H', 'P', '1'};
constexpr size_t kFileBytesMax = 1 << 20;  // Limit for a read. Our files are smaller, but the file may not be ours.
// A reader that meets an unfinished write tries this often. A write takes microseconds, but its thread may have to wait
// for a processor in the middle.
constexpr int kTries = 50;
constexpr absl::Duration kBetweenTries = absl::Milliseconds(1);

void AppendNumber(uint32_t number, std::string& text) {
  for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<char>(number >> shift));
}

uint32_t NumberAt(absl::string_view text) {
  uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<uint8_t>(text[static_cast<size_t>(i)]);
  return number;
}

uint32_t Checksum(absl::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string Encoded(absl::string_view profile) {
  std::string file(kMagic, sizeof kMagic);
  file.reserve(kProfileFileHeaderBytes + profile.size());
  AppendNumber(static_cast<uint32_t>(profile.size()), file);
  AppendNumber(Checksum(profile), file);
  absl::StrAppend(&file, profile);
  return file;
}

// Turns a file's bytes into the profile that they contain. Returns false if the profile is not whole.
bool Decode(std::string& file) {
  if (!absl::StartsWith(file, absl::string_view(kMagic, sizeof kMagic))) return true;
  if (file.size() < kProfileFileHeaderBytes) return false;
  const uint32_t length = NumberAt(absl::string_view(file).substr(4));
  const uint32_t checksum = NumberAt(absl::string_view(file).substr(8));
  file.erase(0, kProfileFileHeaderBytes);
  if (length > file.size()) return false;
  file.resize(length);
  return Checksum(file) == checksum;
}

}  // namespace

absl::Status CreateProfileFile(const std::string& path, absl::string_view profile) {
  return WriteWholeFile(path, Encoded(profile));
}

absl::Status OverwriteProfileFile(const std::string& path, absl::string_view profile) {
  return OverwriteFile(path, Encoded(profile));
}

absl::StatusOr<std::string> ReadProfileFile(const std::string& path) {
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) absl::SleepFor(kBetweenTries);
    std::ifstream file(path, std::ios::binary);
    if (!file.is_open()) return absl::NotFoundError(absl::StrCat("there is no file ", path));
    std::string bytes(kFileBytesMax, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(file.gcount()));
    if (Decode(bytes)) return bytes;
  }
  return absl::NotFoundError(absl::StrCat(path, " holds a part of a profile only"));
}

}  // namespace hooke
