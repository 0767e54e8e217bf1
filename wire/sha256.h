#ifndef HOOKE_WIRE_SHA256_H_
#define HOOKE_WIRE_SHA256_H_

// SHA-256 (FIPS 180-4), by which the contents of files are named.

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace hooke {

constexpr size_t kSha256Bytes = 32;

// The digest of bytes that come in pieces. Use it from one thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(absl::string_view bytes);
  // Returns the digest of all bytes so far, as kSha256Bytes bytes. Afterwards the object is as new.
  std::string Finish();

 private:
  evp_md_ctx_st* const context_;
};

std::string Sha256Of(absl::string_view bytes);
// Returns the digest that 64 hexadecimal digits, without capitals, stand for; "" if `hex` is something else.
std::string Sha256OfHex(absl::string_view hex);

}  // namespace hooke

#endif  // HOOKE_WIRE_SHA256_H_
