#ifndef HOOKE_WORKER_FILE_CACHE_COORDINATOR_FILES_H_
#define HOOKE_WORKER_FILE_CACHE_COORDINATOR_FILES_H_

// Fetches files of jobs from the coordinator (Coordinator.FetchFiles).

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "wire/cluster_token.h"

namespace hooke {

struct FetchOptions {
  std::string coordinator;    // host:port.
  CallCredential credential;  // May be empty.
  // The coordinator may be silent for this long. After that the fetch fails.
  absl::Duration silent_max = absl::Seconds(30);
};

// What to fetch, and for how long.
struct FetchWish {
  std::string job_id;
  std::vector<std::string> sha256;
  absl::Duration limit;  // Limit for the whole fetch.
};

// Passes each chunk to `take`, and calls `stopped` several times a second. An error of either ends the call and is
// returned. UNAVAILABLE: the coordinator cannot be reached, is too slow, or answers with an error, whatever its code.
// Another start of the group may succeed, for example after a damaged file was uploaded again. Each call has a
// connection of its own.
absl::Status FetchFromCoordinator(const FetchOptions& options, const FetchWish& wish,
                                  const std::function<absl::Status(const v1::FileChunk&)>& take,
                                  const std::function<absl::Status()>& stopped);

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_COORDINATOR_FILES_H_
