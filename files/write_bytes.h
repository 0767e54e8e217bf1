#ifndef HOOKE_FILES_WRITE_BYTES_H_
#define HOOKE_FILES_WRITE_BYTES_H_

// The part that all files have in common which are there whole or not at all: new_file.h, whole_file.h.

#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

enum class Durable { kNo, kYes };

// Makes the file `path`, or empties it, and writes all of `bytes`. With Durable::kYes they are on the disk on return.
// Returns 0 or an errno; after an error there is no such file.
int WriteBytes(const std::string& path, absl::string_view bytes, Durable durable);

}  // namespace hooke

#endif  // HOOKE_FILES_WRITE_BYTES_H_
