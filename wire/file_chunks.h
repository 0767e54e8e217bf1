#ifndef HOOKE_WIRE_FILE_CHUNKS_H_
#define HOOKE_WIRE_FILE_CHUNKS_H_

// Contents of files as a stream of v1::FileChunk (proto/coordinator.proto): how they are cut, and how they are checked
// where they arrive.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/coordinator.pb.h"
#include "wire/sha256.h"

namespace hooke {

// Most bytes of data in one chunk that is sent, and in one that is taken.
constexpr size_t kChunkBytesSent = 256 << 10;
constexpr size_t kChunkBytesMax = 1 << 20;

// Checks a stream of chunks, one after another. It keeps no data. After an error nothing more may be taken.
class ChunkCheck {
 public:
  struct Step {
    bool begins = false;  // The chunk is the first one of `content()`.
    bool ends = false;    // The chunk is the last one, and the content has its SHA-256.
  };
  // INVALID_ARGUMENT: the stream breaks the rules of FileChunk. DATA_LOSS: the content has another SHA-256 than its
  // first chunk said.
  absl::StatusOr<Step> Take(const v1::FileChunk& chunk);
  // The content of the last chunk that was taken.
  const v1::FileContent& content() const { return content_; }
  // INVALID_ARGUMENT: the stream may not end here, inside a content.
  absl::Status CheckEnd() const;

 private:
  v1::FileContent content_;
  bool inside_ = false;
  uint64_t taken_ = 0;  // Bytes of `content_`.
  Sha256 sum_;
};

// Sends one content as chunks. `send` returns an error if the stream is broken; that error is returned.
absl::Status SendContent(absl::string_view bytes, const std::function<absl::Status(const v1::FileChunk&)>& send);

// Sends the file at `path`, which must have this content. DATA_LOSS: it has another one. Then the last chunk, or the
// whole file, was not sent, so nobody takes it for the content. NOT_FOUND: there is no such file. FAILED_PRECONDITION:
// it cannot be read. Other errors are those of `send`.
absl::Status SendFile(const std::string& path, const v1::FileContent& content,
                      const std::function<absl::Status(const v1::FileChunk&)>& send);

// Reads a file in pieces of at most kChunkBytesSent. Fails with NOT_FOUND or FAILED_PRECONDITION like SendFile, or with
// the error of `take`.
absl::Status ReadPieces(const std::string& path, const std::function<absl::Status(absl::string_view)>& take);
// Reads a whole file. DATA_LOSS: it has more than `bytes_max`. It also fails with NOT_FOUND or FAILED_PRECONDITION like
// SendFile.
absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t bytes_max);

}  // namespace hooke

#endif  // HOOKE_WIRE_FILE_CHUNKS_H_
