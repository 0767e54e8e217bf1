#ifndef HOOKE_JOB_MODEL_FILE_CENTER_FILE_H_
#define HOOKE_JOB_MODEL_FILE_CENTER_FILE_H_

// A job's center as the bytes of a safetensors file, in one pass from its first byte to its last. The messages of the
// servers come in through an argument, and all of them are checked.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/model_file/safetensors_header.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "wire/calls/center_source.h"

namespace hooke {

class CenterFile {
 public:
  // Reads the header of each shard. So an error that is there from the beginning, like a server that is away, comes
  // before the first byte of the file. `source` outlives the object; its shard i is that of job.servers(i). DATA_LOSS:
  // the servers do not have one center. INVALID_ARGUMENT: a safetensors file cannot hold the tensors.
  // FAILED_PRECONDITION: the job has no center yet. Other errors are the source's.
  static absl::StatusOr<CenterFile> Open(const v1::JobStatus& job, CenterSource& source);

  uint64_t bytes() const { return head_.size() + 4 * values_; }  // Of the whole file.
  uint64_t tensors() const { return tensors_; }
  uint64_t values() const { return values_; }
  // Whether the file describes the model: the normalization of its input, and so on.
  bool described() const { return layout_.has_model(); }
  const std::vector<std::string>& notes() const { return notes_; }  // Remarks for people, each a sentence.

  // Returns the next bytes of the file: its head, and then one block after the other. Returns "" at the end, when all
  // are there. DATA_LOSS: the servers did not send one complete center. Other errors are the source's.
  absl::StatusOr<std::string> Next();

 private:
  CenterFile(const v1::JobStatus& job, CenterSource& source);

  absl::Status TakeHeader(int shard, const std::optional<v1::PullResponse>& message);
  absl::Status CompareWithFirst(int shard, const v1::Layout& layout);
  absl::Status MakeHead(const v1::JobStatus& job);
  absl::Status CheckBlock(const v1::PullResponse& message) const;
  absl::Status BadShard(int shard, const absl::Status& status) const;

  CenterSource* source_;
  std::vector<std::string> servers_;
  v1::Layout layout_;  // From shard 0; the other shards must have the same parameters.
  std::vector<std::string> notes_;
  std::string head_;
  uint64_t tensors_ = 0;
  uint64_t values_ = 0;
  bool head_sent_ = false;
  int shard_ = 0;
  uint64_t next_ = 0;  // Index of the next value to come.
};

}  // namespace hooke

#endif  // HOOKE_JOB_MODEL_FILE_CENTER_FILE_H_
