#ifndef BOWLINE_RUNTIME_BASE_SHA256_H_
#define BOWLINE_RUNTIME_BASE_SHA256_H_

// SHA-256 (FIPS 180-4), for content hashes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX; its headers stay out of ours

namespace bowline {

using Sha256Digest = std::array<uint8_t, 32>;

// Hashes bytes that arrive in pieces:  Sha256 hash; hash.Update(a); hash.Update(b); digest = hash.Finish();
class Sha256 {
 public:
  Sha256();

  void Update(absl::Span<const uint8_t> bytes);
  void Update(absl::string_view text);

  // The digest of everything so far. The object then starts anew, as if just constructed.
  Sha256Digest Finish();

 private:
  struct ContextDeleter {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, ContextDeleter> context_;
};

Sha256Digest Sha256Of(absl::Span<const uint8_t> bytes);
Sha256Digest Sha256Of(absl::string_view text);

// Lower-case hexadecimal, two characters a byte.
std::string ToHex(absl::Span<const uint8_t> bytes);

// Parses 64 hexadecimal characters of either case. False, with `digest` unchanged, for anything else.
bool DigestFromHex(absl::string_view hex, Sha256Digest* digest);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_SHA256_H_
