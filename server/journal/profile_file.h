#ifndef HOOKE_SERVER_JOURNAL_PROFILE_FILE_H_
#define HOOKE_SERVER_JOURNAL_PROFILE_FILE_H_

// The file of one profile. It is overwritten in place. Making a new file for each profile would cost more than all else
// that the coordinator does with a profile. A checksum tells a reader whether it has a whole profile.
//
//   bytes   content
//   4       00 'H' 'P' '1'. Earlier versions wrote the profile alone, which never begins with a zero.
//   4       length of the profile, little-endian
//   4       CRC-32 of the profile, little-endian
//   length  the profile, a serialized v1::RankProfile
//   any     the rest of an earlier, longer profile

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

constexpr uint64_t kProfileFileHeaderBytes = 12;

// Makes the file `path`, or replaces it. A reader sees the old profile or the new one. RESOURCE_EXHAUSTED: the disk is
// full; INTERNAL: another error. Both name the file, and the old profile stays.
absl::Status CreateProfileFile(const std::string& path, absl::string_view profile);

// Overwrites a file that CreateProfileFile has made. After an error, or if the process dies meanwhile, the file may be
// without a profile. Errors are as above; NOT_FOUND: there is no such file.
absl::Status OverwriteProfileFile(const std::string& path, absl::string_view profile);

// Returns the profile. Another thread may overwrite the file meanwhile. NOT_FOUND: there is no such file, or it was
// being overwritten when a process died.
absl::StatusOr<std::string> ReadProfileFile(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_SERVER_JOURNAL_PROFILE_FILE_H_
