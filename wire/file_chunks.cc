#include "wire/file_chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("a stream of files: ", what));
}

// Holds back one chunk, so that the last one is only sent once the whole content is known to be right.
class Sender {
 public:
  Sender(const v1::FileContent& content, const std::function<absl::Status(const v1::FileChunk&)>& send)
      : content_(content), send_(send) {
    *next_.mutable_begins() = content;
  }

  absl::Status Add(absl::string_view piece) {
    bytes_ += piece.size();
    if (bytes_ > content_.bytes()) return Changed();
    sum_.Add(piece);
    if (!next_.data().empty()) {
      if (absl::Status status = send_(next_); !status.ok()) return status;
      next_.clear_begins();
    }
    next_.set_data(piece.data(), piece.size());
    return absl::OkStatus();
  }

  absl::Status Finish() {
    if (bytes_ != content_.bytes() || sum_.Finish() != content_.sha256()) return Changed();
    return send_(next_);
  }

 private:
  static absl::Status Changed() { return absl::DataLossError("it has another content than it had"); }

  const v1::FileContent& content_;
  const std::function<absl::Status(const v1::FileChunk&)>& send_;
  v1::FileChunk next_;
  Sha256 sum_;
  uint64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<ChunkCheck::Step> ChunkCheck::Take(const v1::FileChunk& chunk) {
  Step step;
  if (chunk.has_begins()) {
    if (inside_) return Wrong("a content begins before the one before has ended");
    if (chunk.begins().sha256().size() != kSha256Bytes) return Wrong("a content's sha256 does not have 32 bytes");
    content_ = chunk.begins();
    step.begins = inside_ = true;
    taken_ = 0;
  }
  if (!inside_) return Wrong("a chunk belongs to no content");
  if (chunk.data().size() > kChunkBytesMax) return Wrong("a chunk has more than 1 MiB");
  if (chunk.data().empty() && content_.bytes() > 0) return Wrong("a chunk is empty");
  if (chunk.data().size() > content_.bytes() - taken_) return Wrong("a content is longer than it was said to be");
  taken_ += chunk.data().size();
  sum_.Add(chunk.data());
  if (taken_ < content_.bytes()) return step;
  inside_ = false;
  step.ends = true;
  if (sum_.Finish() == content_.sha256()) return step;
  return absl::DataLossError(absl::StrCat("a file came with other bytes than its SHA-256 ",
                                          absl::BytesToHexString(content_.sha256()), " says; try again"));
}

absl::Status ChunkCheck::CheckEnd() const { return inside_ ? Wrong("it ended inside a content") : absl::OkStatus(); }

absl::Status SendContent(absl::string_view bytes, const std::function<absl::Status(const v1::FileChunk&)>& send) {
  v1::FileContent content;
  content.set_sha256(Sha256Of(bytes));
  content.set_bytes(bytes.size());
  Sender sender(content, send);
  for (size_t at = 0; at < bytes.size(); at += kChunkBytesSent) {
    if (absl::Status status = sender.Add(bytes.substr(at, kChunkBytesSent)); !status.ok()) return status;
  }
  return sender.Finish();
}

absl::Status SendFile(const std::string& path, const v1::FileContent& content,
                      const std::function<absl::Status(const v1::FileChunk&)>& send) {
  Sender sender(content, send);
  absl::Status status = ReadPieces(path, [&](absl::string_view piece) { return sender.Add(piece); });
  return status.ok() ? sender.Finish() : status;
}

absl::Status ReadPieces(const std::string& path, const std::function<absl::Status(absl::string_view)>& take) {
  // Without O_NONBLOCK, opening a pipe that has no writer would wait for ever.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return absl::NotFoundError("it is not there");
  if (file < 0) return absl::FailedPreconditionError(absl::StrCat("it cannot be opened: ", strerror(errno)));
  const auto close_file = absl::MakeCleanup([file] { close(file); });
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return absl::FailedPreconditionError("it is no plain file");
  std::string piece(kChunkBytesSent, '\0');
  while (true) {
    const ssize_t count = read(file, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::FailedPreconditionError(absl::StrCat("it cannot be read: ", strerror(errno)));
    if (count == 0) return absl::OkStatus();
    if (absl::Status status = take(absl::string_view(piece.data(), static_cast<size_t>(count))); !status.ok()) {
      return status;
    }
  }
}

absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t bytes_max) {
  std::string bytes;
  const absl::Status status = ReadPieces(path, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return bytes.size() <= bytes_max ? absl::OkStatus() : absl::DataLossError("it is too long");
  });
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace hooke
