#include "runtime/plan/meaning/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bowline {
namespace {

Digest HashOf(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

}  // namespace

Digest DigestOfBytes(absl::Span<const uint8_t> bytes) { return HashOf(bytes.data(), bytes.size()); }

DigestBuilder& DigestBuilder::Add(absl::string_view text) {
  return Add(text.size()).Add(HashOf(text.data(), text.size()));
}

// Words lie in memory with the lowest byte first, as all of a FlatBuffer does.
Digest DigestBuilder::Finish() const { return HashOf(words_.data(), words_.size() * sizeof(uint64_t)); }

}  // namespace bowline
