#ifndef BOWLINE_RUNTIME_PLAN_MEANING_DIGEST_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_DIGEST_H_

// Hashes of 128 bits (XXH3-128), equal in every run and on every machine. They detect accidental changes; they do not
// resist somebody who searches for a collision.

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bowline {

struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Digest& a, const Digest& b) { return a.low == b.low && a.high == b.high; }
  friend bool operator!=(const Digest& a, const Digest& b) { return !(a == b); }
  friend bool operator<(const Digest& a, const Digest& b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }
};

Digest DigestOfBytes(absl::Span<const uint8_t> bytes);

// Builds the digest of a sequence. `tag` identifies the kind of sequence. Before a variable number of elements, the
// caller adds their number.
class DigestBuilder {
 public:
  explicit DigestBuilder(uint64_t tag) { words_.push_back(tag); }

  DigestBuilder& Add(uint64_t number) {
    words_.push_back(number);
    return *this;
  }
  DigestBuilder& Add(const Digest& digest) { return Add(digest.low).Add(digest.high); }
  DigestBuilder& Add(absl::string_view text);

  Digest Finish() const;

 private:
  absl::InlinedVector<uint64_t, 30> words_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_DIGEST_H_
