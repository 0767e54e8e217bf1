#ifndef HOOKE_WORKER_FILE_CACHE_CHOOSE_EVICTIONS_H_
#define HOOKE_WORKER_FILE_CACHE_CHOOSE_EVICTIONS_H_

// Decides which files leave a full cache, and which leave a full disk. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hooke {

struct CachedFile {
  std::string name;
  uint64_t bytes = 0;
  uint64_t used = 0;    // A lower number means that the last use is longer ago.
  bool in_use = false;  // A group that runs or starts uses it, so it must stay.
};

// Returns OK if a cache of `bytes_max` bytes can hold `need` bytes, else FAILED_PRECONDITION.
absl::Status CheckFits(uint64_t need, uint64_t bytes_max);

// Returns the names of the files that must leave so that `need` more bytes fit into `bytes_max`. These are the files
// that were used the longest time ago, and no more than necessary. FAILED_PRECONDITION: `need` alone is too much.
// RESOURCE_EXHAUSTED: files in use leave too little room; the message says how much they take.
absl::StatusOr<std::vector<std::string>> ChooseEvictions(std::vector<CachedFile> files, uint64_t need,
                                                         uint64_t bytes_max);

// Returns the names of the files that must leave so that `need` bytes of a full disk become free, at least one: again
// those that were used the longest time ago. If all that are not in use do not suffice, it returns them all. Empty: all
// are in use.
std::vector<std::string> ChooseForDisk(std::vector<CachedFile> files, uint64_t need);

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_CHOOSE_EVICTIONS_H_
