#ifndef HOOKE_CLIENT_FILES_COLLECT_FILES_H_
#define HOOKE_CLIENT_FILES_COLLECT_FILES_H_

// Reads the files that a job sends to its groups: what a job file's key `files` names, as a manifest and its contents.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"

namespace hooke {

struct CollectedFiles {
  struct Content {
    v1::FileContent content;
    std::string path;  // The path of a file that has this content.
  };

  v1::FileSet set;
  std::string manifest;           // The bytes of the FileManifest.
  std::vector<Content> contents;  // Each different content once.
};

// Reads all files that `paths` name in `folder`, an absolute path. The paths have passed CheckFilePath, or are ".". A
// folder stands for all that it holds. A path that is named twice counts once.
//
// A link to a file counts as the file. A link to a folder counts as the folder if `paths` name it, and is refused
// inside another folder, because it may lead in a circle. Devices, pipes and sockets are refused.
//
// INVALID_ARGUMENT: a file is missing, cannot be read, is of another kind, or changes while it is read; or there are
// too many. The message names the path if a single path is wrong.
absl::StatusOr<CollectedFiles> CollectFiles(const std::string& folder, const std::vector<std::string>& paths);

}  // namespace hooke

#endif  // HOOKE_CLIENT_FILES_COLLECT_FILES_H_
