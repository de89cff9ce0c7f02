#include "runtime/base/sha256.h"

#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>

namespace bowline {
namespace {

// SHA-256 fails only when OpenSSL is broken or out of memory; a wrong digest must not pass for a right one.
void CheckOpenSsl(int result) {
  if (result != 1) {
    std::fputs("fatal: OpenSSL cannot compute SHA-256; check its installation and configuration\n", stderr);
    std::abort();
  }
}

absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Sha256::ContextDeleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CheckOpenSsl(context_ != nullptr);
  CheckOpenSsl(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::Update(absl::Span<const uint8_t> bytes) {
  CheckOpenSsl(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

void Sha256::Update(absl::string_view text) { Update(AsBytes(text)); }

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  CheckOpenSsl(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
  CheckOpenSsl(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  return digest;
}

Sha256Digest Sha256Of(absl::Span<const uint8_t> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

Sha256Digest Sha256Of(absl::string_view text) { return Sha256Of(AsBytes(text)); }

std::string ToHex(absl::Span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (uint8_t byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

bool DigestFromHex(absl::string_view hex, Sha256Digest* digest) {
  Sha256Digest parsed;
  if (hex.size() != parsed.size() * 2) return false;
  for (size_t i = 0; i < parsed.size(); ++i) {
    const int high = HexValue(hex[2 * i]);
    const int low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    parsed[i] = static_cast<uint8_t>(high * 16 + low);
  }
  *digest = parsed;
  return true;
}

}  // namespace bowline
