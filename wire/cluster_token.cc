#include "wire/cluster_token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hooke {
namespace {

constexpr size_t kLeast = 16;
constexpr size_t kMost = 4096;
constexpr absl::string_view kMake = "make one with `(umask 077; openssl rand -hex 32 > FILE)`";

// Compares in a time that does not depend on where the secrets differ. If their lengths differ it returns at once,
// because the length is no secret.
bool SameSecret(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::Status Refuse(absl::StatusCode code, const std::string& path, absl::string_view why) {
  return absl::Status(code, absl::StrCat("the token file ", path, " ", why));
}

// Returns the start of the file: at most one byte more than a token and its line end can have.
absl::StatusOr<std::string> ReadStart(int file, const std::string& path) {
  std::string text(kMost + 3, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(file, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Refuse(absl::StatusCode::kPermissionDenied, path, absl::StrCat("cannot be read: ", strerror(errno)));
    }
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace

CallCredential ClusterToken::ForJob(absl::string_view job_id) const {
  if (empty()) return {};
  const std::string text = absl::StrCat("hooke job ", job_id);
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &size);
  digest.resize(size);
  return {absl::BytesToHexString(digest), std::string(job_id)};
}

bool ClusterToken::Made(const CallCredential& credential) const {
  if (empty()) return false;
  return SameSecret(credential.secret, credential.job_id.empty() ? secret_ : ForJob(credential.job_id).secret);
}

absl::StatusOr<ClusterToken> ReadClusterToken(const std::string& path) {
  if (path.empty()) return ClusterToken();
  // Without O_NONBLOCK, opening a pipe that has no writer would wait for ever.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return Refuse(absl::StatusCode::kNotFound, path, absl::StrCat("does not exist; ", kMake));
  }
  if (file < 0) {
    return Refuse(absl::StatusCode::kPermissionDenied, path, absl::StrCat("cannot be opened: ", strerror(errno)));
  }
  const auto close_file = absl::MakeCleanup([file] { close(file); });
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    return Refuse(absl::StatusCode::kInvalidArgument, path, "is no regular file");
  }
  // systemd and Kubernetes hand a secret to a service as a file of root that the service's group may read.
  const bool of_root = info.st_uid == 0 && geteuid() != 0;
  if ((info.st_mode & (of_root ? 037 : 077)) != 0) {
    return Refuse(absl::StatusCode::kPermissionDenied, path,
                  absl::StrCat("is open to others than its owner; run `chmod 600 ", path,
                               "`, and make a new token if others may have read this one"));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return Refuse(absl::StatusCode::kPermissionDenied, path, "belongs to another user, who may change it");
  }
  const absl::StatusOr<std::string> text = ReadStart(file, path);
  if (!text.ok()) return text.status();
  absl::string_view line = absl::StripSuffix(absl::StripSuffix(*text, "\n"), "\r");
  if (line.size() < kLeast || line.size() > kMost) {
    return Refuse(absl::StatusCode::kInvalidArgument, path,
                  absl::StrCat("has ", line.size() > kMost ? "more" : "fewer", " characters than a token, which has ",
                               kLeast, " to ", kMost, "; ", kMake));
  }
  if (!std::all_of(line.begin(), line.end(), [](char c) { return absl::ascii_isgraph(c); })) {
    return Refuse(absl::StatusCode::kInvalidArgument, path,
                  absl::StrCat("does not hold one line of printable characters without spaces; ", kMake));
  }
  return ClusterToken(std::string(line));
}

}  // namespace hooke
