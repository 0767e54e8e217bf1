#ifndef HOOKE_CLIENT_EXPORT_EXPORT_CENTER_H_
#define HOOKE_CLIENT_EXPORT_EXPORT_CENTER_H_

// Pulls a job's center from the servers that hold its shards, and writes it as a safetensors file.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/process/interrupts.h"
#include "proto/coordinator.pb.h"
#include "wire/cluster_token.h"

namespace hooke {

struct ExportOptions {
  std::string path;
  bool force = false;                          // Whether to replace an existing file.
  absl::Duration silence = absl::Seconds(30);  // A server that sends nothing for this long has failed.
  Interrupts* interrupts = nullptr;            // Not owned; may be null. An interrupt ends the export with CANCELLED.
  ClusterToken token = {};                     // Of the cluster; may be empty.
};

struct Exported {
  uint64_t parameters = 0;  // Number of tensors.
  uint64_t values = 0;
  uint64_t bytes = 0;  // Size of the file.
  // Whether the file describes the model: the normalization of its input, and so on.
  bool described = false;
  std::vector<std::string> notes;  // Remarks for people, each a sentence.
};

// Exports the center. After an error there is no new file, and an old one is unchanged. ALREADY_EXISTS: the file exists
// and `force` is not set. FAILED_PRECONDITION: the job has no center yet, or the disk is full. UNAVAILABLE: a server
// cannot be reached. DATA_LOSS: the servers did not send one complete center. ABORTED: a server has cut its call.
// CANCELLED: an interrupt. INVALID_ARGUMENT: a safetensors file cannot hold the tensors. Any other code comes from a
// server.
absl::StatusOr<Exported> ExportCenter(const v1::JobStatus& job, const ExportOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_EXPORT_EXPORT_CENTER_H_
