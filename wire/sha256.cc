#include "wire/sha256.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/escaping.h"

namespace hooke {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::Add(absl::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }

std::string Sha256::Finish() {
  std::string digest(kSha256Bytes, '\0');
  EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  EVP_DigestInit_ex(context_, EVP_sha256(), nullptr);
  return digest;
}

std::string Sha256Of(absl::string_view bytes) {
  Sha256 sum;
  sum.Add(bytes);
  return sum.Finish();
}

std::string Sha256OfHex(absl::string_view hex) {
  const bool digits =
      std::all_of(hex.begin(), hex.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return digits && hex.size() == 2 * kSha256Bytes ? absl::HexStringToBytes(hex) : "";
}

}  // namespace hooke
