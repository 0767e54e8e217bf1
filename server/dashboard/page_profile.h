#ifndef HOOKE_SERVER_DASHBOARD_PAGE_PROFILE_H_
#define HOOKE_SERVER_DASHBOARD_PAGE_PROFILE_H_

// A job's profile for the web page: the figures that `hooke profile JOB --steps --output json` prints (job/profile/).

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "job/profile/step_split.h"
#include "proto/coordinator.pb.h"
#include "server/coordinator/coordinator.h"

namespace hooke {

// Returns {"job_id", "all": ProfileToJson, "steps": StepSplitToJson, "servers": ServerCoresToJson}. Pure.
std::string ProfileJson(const std::string& job_id, const std::vector<v1::ReadProfileResponse>& ranks,
                        const std::vector<ServerCores>& servers);

// Thread-safe.
class PageProfile {
 public:
  // The coordinator outlives this object.
  explicit PageProfile(Coordinator* coordinator) : coordinator_(*coordinator) {}

  // Profiles of so many bytes are shown: those of some 250 ranks. Their figures take some five times their memory.
  static constexpr size_t kProfileBytesMax = size_t{16} << 20;

  // Returns ProfileJson. For a job without a profile it is {"job_id", "note"}: the note says why there is none.
  // NOT_FOUND: no such job. RESOURCE_EXHAUSTED: its profiles have more than kProfileBytesMax. Other errors are those of
  // Coordinator::ReadProfile. Waits while other profiles are read, about a second for each.
  absl::StatusOr<std::string> Make(const std::string& job_id);

 private:
  Coordinator& coordinator_;
  absl::Mutex makes_one_;  // Bounds the memory. Guards no data.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_PAGE_PROFILE_H_
