#ifndef BOWLINE_RUNTIME_COMM_HASH_H_
#define BOWLINE_RUNTIME_COMM_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace bowline {

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv. It is equal in every process; the hash of absl is not.
class Hash {
 public:
  void AddByte(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  void Add(uint64_t value) {
    for (int i = 0; i < 8; ++i) AddByte(static_cast<uint8_t>(value >> (8 * i)));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

inline uint64_t HashOf(absl::string_view text) {
  Hash hash;
  for (char c : text) hash.AddByte(static_cast<uint8_t>(c));
  return hash.value();
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_HASH_H_
