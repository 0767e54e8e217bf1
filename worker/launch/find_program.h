#ifndef HOOKE_WORKER_LAUNCH_FIND_PROGRAM_H_
#define HOOKE_WORKER_LAUNCH_FIND_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

// Returns whether the path is that of a file that this user may run.
bool IsProgram(const std::string& path);

// Returns the path of the first of `names` that is a program in a folder of `path`, which is written like $PATH; "" if
// none is.
std::string FindProgram(const std::vector<std::string>& names, absl::string_view path);

// Returns the path, absolute, with links in its folder resolved; the path itself if there is no such folder, or if it
// is a name without a folder. Open MPI uses the parent of an absolute mpirun's folder as its prefix, and refuses "/".
// Where /bin is a link to /usr/bin,
// "/bin/mpirun" would give that prefix.
std::string InRealFolder(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_FIND_PROGRAM_H_
