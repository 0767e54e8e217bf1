#ifndef HOOKE_WORKER_DATA_IDX_FILE_H_
#define HOOKE_WORKER_DATA_IDX_FILE_H_

// Reads and checks one IDX file of unsigned bytes, plain or gzip.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hooke {

struct IdxFormat {
  std::string path;     // If it does not exist, path + ".gz" is read.
  std::string items;    // Name of the file's items for messages: "images", "labels".
  uint32_t dimensions;  // Number of sizes in the header, 1 to 255. The first size counts items.
  uint64_t bytes_max;   // Most bytes of data after the header.
};

struct IdxFile {
  std::string path;             // The path that was read.
  std::vector<uint32_t> sizes;  // The sizes in the header, one for each dimension, all >= 1.
  std::vector<uint8_t> bytes;   // The data. Their number is the product of sizes.
};

// Reads a file. Errors are those of IdxDataset::Load.
absl::StatusOr<IdxFile> ReadIdxFile(const IdxFormat& format);

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_IDX_FILE_H_
