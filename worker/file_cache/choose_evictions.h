#ifndef HOOKE_WORKER_FILE_CACHE_CHOOSE_EVICTIONS_H_
#define HOOKE_WORKER_FILE_CACHE_CHOOSE_EVICTIONS_H_

// Decides which files leave a full cache. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hooke {

struct CachedFile {
  std::string name;
  uint64_t bytes = 0;
  absl::Time used;
  bool in_use = false;  // A running group uses it, or one that starts. It stays.
};

// Returns the names of the files that must leave so that `need` more bytes fit into `bytes_max`. These are the files
// that were used the longest time ago, and no more than necessary. FAILED_PRECONDITION: `need` alone is too much.
// RESOURCE_EXHAUSTED: files in use leave too little room; the message says how much they take.
absl::StatusOr<std::vector<std::string>> ChooseEvictions(std::vector<CachedFile> files, uint64_t need,
                                                         uint64_t bytes_max);

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_CHOOSE_EVICTIONS_H_
