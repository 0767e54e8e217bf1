#ifndef HOOKE_JOB_FILE_MANIFEST_H_
#define HOOKE_JOB_FILE_MANIFEST_H_

// The files of a job with a command: what a FileManifest and a FileSet (proto/job.proto) may say. The client makes
// them, the coordinator and the worker check them. Pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"

namespace hooke {

constexpr size_t kFilesMax = 10000;             // Entries of a manifest.
constexpr size_t kContentsMax = kFilesMax + 1;  // Different contents of a job's files, and its manifest.
constexpr size_t kFilePathBytesMax = 1024;
constexpr size_t kFileNameBytesMax = 255;  // One part of a path.
constexpr size_t kManifestBytesMax = 16 << 20;
// More bytes than any disk has. Sums of two such numbers do not overflow.
constexpr uint64_t kFileBytesMax = uint64_t{1} << 60;

// Checks a path of a manifest. The message of INVALID_ARGUMENT continues a sentence that begins with the path: "has a
// part \"..\"".
absl::Status CheckFilePath(absl::string_view path);

// Checks that the manifest keeps the rules of proto/job.proto. INVALID_ARGUMENT names the fault, and the path if one
// entry is wrong.
absl::Status CheckManifest(const v1::FileManifest& manifest);

// Returns the manifest's serialized form. It is the same for the same entries.
std::string ManifestBytes(const v1::FileManifest& manifest);
// Returns the FileSet with which a job names this manifest.
v1::FileSet FileSetOf(const v1::FileManifest& manifest);

// Checks the values of a FileSet. INVALID_ARGUMENT says the fault: "the SHA-256 of their manifest does not have 32
// bytes".
absl::Status CheckFileSet(const v1::FileSet& set);

// Reads the manifest of a set from its bytes, and checks it. INVALID_ARGUMENT: the set or the manifest is not valid, or
// the manifest is another one than the set says.
absl::StatusOr<v1::FileManifest> ReadManifest(const v1::FileSet& set, absl::string_view bytes);

// Returns each different content once, in the order in which the manifest first names it.
std::vector<v1::FileContent> ContentsOf(const v1::FileManifest& manifest);
// Returns the content that is the manifest itself.
v1::FileContent ManifestContent(const v1::FileSet& set);

// A worker gives up a fetch of files if no byte of them came for this long. A whole fetch has no limit: all workers
// share the coordinator's line, so no worker knows how long its share takes.
constexpr absl::Duration kFetchStillMax = absl::Minutes(1);
// The longest time that a client takes to upload the files, if the coordinator has none of them.
absl::Duration UploadLimit(const v1::FileSet& set);

// The limits of a group that starts on several workers.
struct PartLimits {
  absl::Duration ready;   // The coordinator gives up the start if a part is not ready after this long.
  absl::Duration launch;  // A part that is ready gives up if it is not told to launch for this long. More than `ready`.
};
// A part with files becomes ready once it has fetched them. A worker whose fetch stands still says so itself. So the
// limits for files only end the start on a worker whose disk hangs, and are generous.
PartLimits PartLimitsOf(const v1::CommandSpec& command);

// Returns the size for people, like "12.3 MiB" or "17 bytes".
std::string BytesText(uint64_t bytes);
// Returns the set for people, like "5 files, 12.3 MiB".
std::string FilesText(const v1::FileSet& set);

}  // namespace hooke

#endif  // HOOKE_JOB_FILE_MANIFEST_H_
