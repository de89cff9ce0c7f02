#ifndef BOWLINE_RUNTIME_SERVE_PREFIX_CACHE_H_
#define BOWLINE_RUNTIME_SERVE_PREFIX_CACHE_H_

#include <cstdint>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace bowline::serve {

// Knows which blocks hold which beginnings of texts. A full block is found by its tokens and the block before it, so
// that a chain of blocks stands for one beginning. Keys are compared in full: equal hashes find nothing wrong.
//
// Blocks that no sequence uses are idle, and evicted in the order in which they became so. A block has to become idle
// before the one that it follows; so a chain loses its end first, and the block before that a key names never changes.
class PrefixCache {
 public:
  PrefixCache(int64_t blocks, int64_t block_tokens);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // The block with these tokens behind the block `before`, 0 at the beginning of a text.
  std::optional<int32_t> Find(int32_t before, absl::Span<const int32_t> tokens) const;
  // The longest chain of known blocks that `tokens` begins with, of at most `most` blocks.
  std::vector<int32_t> Match(absl::Span<const int32_t> tokens, int64_t most) const;

  // The key is new, and a sequence uses the block.
  void Insert(int32_t before, absl::Span<const int32_t> tokens, int32_t block);
  bool Holds(int32_t block) const { return keys_[static_cast<size_t>(block)].has_value(); }

  void SetIdle(int32_t block);
  void SetUsed(int32_t block);
  int64_t idle() const { return static_cast<int64_t>(idle_.size()); }
  // Forgets the block that is idle for longest; nothing where none is.
  std::optional<int32_t> Evict();

 private:
  using Key = std::pair<int32_t, std::vector<int32_t>>;  // the block before, and the tokens

  const size_t block_tokens_;
  absl::flat_hash_map<Key, int32_t> blocks_;
  std::vector<std::optional<Key>> keys_;  // of each block
  std::list<int32_t> idle_;               // the longest idle first
  std::vector<std::list<int32_t>::iterator> places_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_PREFIX_CACHE_H_
