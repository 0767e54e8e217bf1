#ifndef HOOKE_CLIENT_HISTORY_EVENT_FILES_H_
#define HOOKE_CLIENT_HISTORY_EVENT_FILES_H_

// The history of a job as event files, which TensorBoard reads. Pure.
//
// A file is a sequence of records: the data's length (uint64), the masked CRC-32C of these eight bytes (uint32), the
// data, the masked CRC-32C of the data (uint32). Numbers are little-endian. The data is a serialized Event
// (proto/event_file.proto). The format is TensorFlow's TFRecord: www.tensorflow.org/tutorials/load_data/tfrecord.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/coordinator.pb.h"

namespace hooke {

struct EventFile {
  // Relative path "JOB/SERIES/events.out.tfevents.SECONDS.hooke". SERIES is "group-0" or "center"; TensorBoard calls
  // "JOB/SERIES" a run. SECONDS is the time of the first point, so each export of a job has the same paths.
  std::string path;
  std::string content;
};

// Returns a file for each series of `points`, which are in the order of ReadHistory (proto/coordinator.proto). A
// group's charts are "loss", "samples_per_s", "exchange_ms", "center_distance", "staleness", and the shares of
// TimeSharesBetween as "compute_share", "collective_share" and "exchange_share". Those of the center are "loss" and
// "accuracy". A value that a point does not have is left out.
std::vector<EventFile> EventFiles(absl::string_view job_id, const std::vector<v1::HistoryPoint>& points);

// Returns the CRC-32C (Castagnoli, RFC 3720) of the bytes.
uint32_t Crc32c(absl::string_view bytes);

}  // namespace hooke

#endif  // HOOKE_CLIENT_HISTORY_EVENT_FILES_H_
