#include "worker/data/idx_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace hooke {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

uint32_t BigEndian32(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
}

// A file's content. zlib unpacks gzip data and passes other data on unchanged.
class Source {
 public:
  static absl::StatusOr<Source> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // Without O_NONBLOCK a pipe would block us.
    if (fd < 0) {
      const int error = errno;
      if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(path);
      return absl::FailedPreconditionError(absl::StrCat("cannot open ", path, ": ", std::strerror(error)));
    }
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      close(fd);
      return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": it is not a regular file"));
    }
    gzFile file = gzdopen(fd, "rb");
    if (file == nullptr) {
      close(fd);
      return absl::ResourceExhaustedError(absl::StrCat("no memory to read ", path));
    }
    gzbuffer(file, 256 << 10);
    return Source(path, file);
  }

  const std::string& path() const { return path_; }

  // Reads up to to.size() bytes; fewer only at the end of the file.
  absl::StatusOr<size_t> Read(absl::Span<uint8_t> to) {
    size_t done = 0;
    while (done < to.size()) {
      const size_t want = std::min(to.size() - done, kChunkBytes);
      const int got = gzread(file_.get(), to.data() + done, static_cast<unsigned>(want));
      if (got < 0) return Failure();
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    if (absl::EndsWith(path_, ".gz") && gzdirect(file_.get()) == 1) {
      return absl::DataLossError(absl::StrCat(path_, " is not gzip data, as its name says; download it again"));
    }
    if (done < to.size()) {
      int code = Z_OK;
      gzerror(file_.get(), &code);
      if (code != Z_OK && code != Z_STREAM_END) return Failure();
    }
    return done;
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  Source(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}

  absl::Status Failure() const {
    const int error = errno;
    int code = Z_OK;
    std::string message = gzerror(file_.get(), &code);
    message.erase(0, absl::StartsWith(message, "<fd:") ? message.find(' ') + 1 : 0);  // Removes zlib's own name for the
                                                                                      // file from its message.
    if (code == Z_ERRNO) {
      return absl::FailedPreconditionError(absl::StrCat("cannot read ", path_, ": ", std::strerror(error)));
    }
    if (code == Z_MEM_ERROR) return absl::ResourceExhaustedError(absl::StrCat("no memory to read ", path_));
    if (code == Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(path_, " is cut short: its gzip data ends early; download it again"));
    }
    return absl::DataLossError(absl::StrCat(path_, " is corrupt (", message, "); download it again"));
  }

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

absl::StatusOr<Source> OpenPlainOrGzip(const IdxFormat& format) {
  absl::StatusOr<Source> plain = Source::Open(format.path);
  if (!absl::IsNotFound(plain.status())) return plain;
  absl::StatusOr<Source> gzip = Source::Open(format.path + ".gz");
  if (!absl::IsNotFound(gzip.status())) return gzip;
  return absl::NotFoundError(absl::StrCat("no ", format.items, ": neither ", format.path, " nor ", format.path,
                                          ".gz exists; data.train and data.test name the part before \"-", format.items,
                                          "-\""));
}

// Reads the header: a magic with the type and the number of dimensions, then one size for each dimension.
absl::StatusOr<std::vector<uint32_t>> ReadSizes(const IdxFormat& format, Source& source) {
  std::vector<uint8_t> header(4 + 4 * format.dimensions);
  absl::StatusOr<size_t> got = source.Read(absl::MakeSpan(header));
  if (!got.ok()) return got.status();
  const uint32_t magic = 0x00000800 | format.dimensions;
  if (*got >= 4 && BigEndian32(header.data()) != magic) {
    return absl::InvalidArgumentError(absl::StrFormat("%s is not an IDX file of %s: it starts with 0x%08x, not 0x%08x",
                                                      source.path(), format.items, BigEndian32(header.data()), magic));
  }
  if (*got < header.size()) {
    return absl::DataLossError(absl::StrCat(source.path(), " is cut short: an IDX file of ", format.items,
                                            " starts with a header of ", header.size(), " bytes, there are ", *got));
  }
  std::vector<uint32_t> sizes;
  for (size_t at = 4; at < header.size(); at += 4) sizes.push_back(BigEndian32(header.data() + at));
  return sizes;
}

// Returns the product of the sizes. It is checked before anything is allocated.
absl::StatusOr<uint64_t> PromisedBytes(const IdxFormat& format, const std::string& path,
                                       const std::vector<uint32_t>& sizes) {
  uint64_t bytes = 1;
  bool fits = true;
  for (uint32_t size : sizes) {
    if (size == 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, " holds no ", format.items, ": a size in its header is 0"));
    }
    fits = fits && bytes <= format.bytes_max / size;
    if (fits) bytes *= size;
  }
  if (fits) return bytes;
  std::string product;
  for (uint32_t size : sizes) absl::StrAppend(&product, product.empty() ? "" : " x ", size);
  return absl::InvalidArgumentError(absl::StrCat(path, ": its header promises ", product, " bytes of ", format.items,
                                                 "; at most ", format.bytes_max, " are supported"));
}

// Reads as many bytes as the header promises; one more is an error. The vector grows with the bytes read, not with the
// promise.
absl::StatusOr<std::vector<uint8_t>> ReadPromised(const IdxFormat& format, uint64_t promised, Source& source) {
  std::vector<uint8_t> bytes;
  while (bytes.size() < promised) {
    const size_t before = bytes.size();
    const size_t want = std::min<uint64_t>(promised - before, kChunkBytes);
    bytes.resize(before + want);
    absl::StatusOr<size_t> got = source.Read(absl::MakeSpan(bytes).subspan(before));
    if (!got.ok()) return got.status();
    if (*got < want) {
      return absl::DataLossError(absl::StrCat(source.path(), " is cut short: its header promises ", promised,
                                              " bytes of ", format.items, ", there are ", before + *got,
                                              "; download it again"));
    }
  }
  // Reading to the end also makes zlib compare its checksum.
  uint8_t extra = 0;
  absl::StatusOr<size_t> got = source.Read(absl::MakeSpan(&extra, 1));
  if (!got.ok()) return got.status();
  if (*got > 0) {
    return absl::DataLossError(absl::StrCat(source.path(), " is too long: its header promises ", promised, " bytes of ",
                                            format.items, " and more follow; download it again"));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<IdxFile> ReadIdxFile(const IdxFormat& format) {
  absl::StatusOr<Source> source = OpenPlainOrGzip(format);
  if (!source.ok()) return source.status();
  absl::StatusOr<std::vector<uint32_t>> sizes = ReadSizes(format, *source);
  if (!sizes.ok()) return sizes.status();
  absl::StatusOr<uint64_t> promised = PromisedBytes(format, source->path(), *sizes);
  if (!promised.ok()) return promised.status();
  absl::StatusOr<std::vector<uint8_t>> bytes = ReadPromised(format, *promised, *source);
  if (!bytes.ok()) return bytes.status();
  return IdxFile{source->path(), *std::move(sizes), *std::move(bytes)};
}

}  // namespace hooke
