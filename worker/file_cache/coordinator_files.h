#ifndef HOOKE_WORKER_FILE_CACHE_COORDINATOR_FILES_H_
#define HOOKE_WORKER_FILE_CACHE_COORDINATOR_FILES_H_

// Fetches files of jobs from the coordinator (Coordinator.FetchFiles).

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "job/file_manifest.h"
#include "proto/coordinator.pb.h"
#include "wire/cluster_token.h"

namespace hooke {

struct FetchOptions {
  std::string coordinator;    // host:port.
  CallCredential credential;  // May be empty.
  // The fetch fails if nothing came for this long. As long as chunks come, it goes on.
  absl::Duration silent_max = kFetchStillMax;
  std::function<absl::Time()> clock = SteadyTime;
};

// What to fetch.
struct FetchWish {
  std::string job_id;
  std::vector<std::string> sha256;
};

// Passes each chunk to `take`, and calls `stopped` several times a second. An error of either ends the call and is
// returned. UNAVAILABLE: the coordinator cannot be reached, is silent, or answers with an error, whatever its code.
// Another start of the group may succeed, for example after a damaged file was uploaded again. Each call has a
// connection of its own.
absl::Status FetchFromCoordinator(const FetchOptions& options, const FetchWish& wish,
                                  const std::function<absl::Status(const v1::FileChunk&)>& take,
                                  const std::function<absl::Status()>& stopped);

}  // namespace hooke

#endif  // HOOKE_WORKER_FILE_CACHE_COORDINATOR_FILES_H_
