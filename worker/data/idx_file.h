#ifndef HOOKE_WORKER_DATA_IDX_FILE_H_
#define HOOKE_WORKER_DATA_IDX_FILE_H_

// Reads one IDX file of unsigned bytes, plain or gzip, with checks. Called by IdxDataset only.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hooke {

struct IdxFormat {
  std::string path;     // Read; where it does not exist, path + ".gz".
  std::string items;    // What the file holds, for messages: "images", "labels".
  uint32_t dimensions;  // 1 to 255: the header has so many sizes. The first counts items.
  uint64_t bytes_max;   // Data after the header.
};

struct IdxFile {
  std::string path;             // The one that was read.
  std::vector<uint32_t> sizes;  // One for each dimension, all >= 1.
  std::vector<uint8_t> bytes;   // As many as the product of sizes.
};

// Errors as IdxDataset::Load says.
absl::StatusOr<IdxFile> ReadIdxFile(const IdxFormat& format);

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_IDX_FILE_H_
