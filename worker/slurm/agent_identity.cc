#include "worker/slurm/agent_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

constexpr size_t kDigits = 16;    // Hexadecimal digits of the random part of an instance.
constexpr size_t kHostMax = 100;  // Bytes of the host's name that count. An instance has at most 128.

bool IsRandomPart(const std::string& text) {
  return text.size() == kDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isxdigit(c); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<AgentIdentity>> AgentIdentity::Take(const std::string& folder, const std::string& host) {
  // Each host has a file of its own: where the file system is shared, a lock may hold for all hosts or for one.
  const std::string path = absl::StrCat(folder, "/instance-", host.substr(0, kHostMax));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::InternalError(absl::StrCat("cannot open ", path, ": ", strerror(errno)));
  std::unique_ptr<AgentIdentity> identity(new AgentIdentity(fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError(absl::StrCat("another hooke-worker --slurm of this host uses ", folder,
                                                        ": end it first, or give this one another --state-dir"));
    }
    // The file system knows no locks, so two agents could not see each other here. This one has an identity for itself.
    identity->instance_ = RandomHex(2);
    return identity;
  }
  char bytes[kDigits];
  std::string digits(bytes, std::max<ssize_t>(0, pread(fd, bytes, sizeof bytes, 0)));
  if (!IsRandomPart(digits)) {
    digits = RandomHex(2);
    if (pwrite(fd, digits.data(), digits.size(), 0) != static_cast<ssize_t>(digits.size())) {
      return absl::InternalError(absl::StrCat("cannot write ", path, ": ", strerror(errno)));
    }
  }
  identity->instance_ = absl::StrCat(digits, "-", host.substr(0, kHostMax));
  return identity;
}

AgentIdentity::~AgentIdentity() { close(fd_); }

}  // namespace hooke
