#ifndef HOOKE_SERVER_CLUSTER_JOB_ROW_H_
#define HOOKE_SERVER_CLUSTER_JOB_ROW_H_

// A job as one row of a list: what a list of a thousand jobs shows of each. Plain values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/coordinator.pb.h"

namespace hooke {

// Values are those of JobStatus.
struct JobRow {
  std::string job_id;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  std::string reason;
  int64_t submitted_unix_ms = 0;
  int64_t first_step_unix_ms = 0;
  int64_t ended_unix_ms = 0;
  std::optional<double> done;      // Share of all groups' steps, 0 to 1; nullopt: not known.
  std::optional<double> accuracy;  // Of the center; nullopt: it has not been evaluated.
  std::string what;                // "mlp, 2 groups x 2 ranks, elastic".
  std::string owner;               // JobSpec.owner.
};

// A list of jobs that has changed since its reader had `version`.
struct JobRows {
  uint64_t version = 0;      // The caller passes it to the next call, to learn what has changed since.
  bool whole = false;        // True: these are all rows. False: only those that are new or changed.
  std::vector<JobRow> rows;  // Newest job first.
  size_t left_out = 0;       // Number of older jobs that the list does not have.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_JOB_ROW_H_
