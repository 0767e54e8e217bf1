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

namespace hooke {

struct ExportOptions {
  std::string path;
  bool force = false;                          // Replace a file that is there.
  absl::Duration silence = absl::Seconds(30);  // A server that says nothing for so long has failed.
  Interrupts* interrupts = nullptr;            // Not owned; may be null. One that comes ends the export: CANCELLED.
};

struct Exported {
  uint64_t parameters = 0;  // Tensors.
  uint64_t values = 0;
  uint64_t bytes = 0;              // Of the file.
  bool described = false;          // The file says how the model is used: the normalization of its input, and so on.
  std::vector<std::string> notes;  // What a person should know, each a sentence.
};

// After an error there is no new file, and one that was there is as it was. ALREADY_EXISTS: it is there and `force` is
// not set. FAILED_PRECONDITION: the job has no center yet, or the disk is full. UNAVAILABLE: a server cannot be
// reached. DATA_LOSS: what the servers sent is not one center.
absl::StatusOr<Exported> ExportCenter(const v1::JobStatus& job, const ExportOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_EXPORT_EXPORT_CENTER_H_
