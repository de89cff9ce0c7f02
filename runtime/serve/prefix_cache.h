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

// Finds the blocks that hold the beginning of a text. The key of a full block is its tokens and the block before it, so
// a chain of blocks stands for one beginning. Keys are compared in full: a hash collision does no harm.
//
// Blocks that no sequence uses are idle, and evicted in the order in which they became idle. A block must become idle
// before its predecessor does. So a chain loses its end first, and the predecessor in a key stays the same block.
class PrefixCache {
 public:
  PrefixCache(int64_t blocks, int64_t block_tokens);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // The block that holds these tokens and follows the block `before`, which is 0 at the beginning of a text.
  std::optional<int32_t> Find(int32_t before, absl::Span<const int32_t> tokens) const;
  // The longest chain of known blocks that hold the beginning of `tokens`; at most `most` blocks.
  std::vector<int32_t> Match(absl::Span<const int32_t> tokens, int64_t most) const;

  // Adds a block that a sequence uses. No other block has this key.
  void Insert(int32_t before, absl::Span<const int32_t> tokens, int32_t block);
  bool Holds(int32_t block) const { return keys_[static_cast<size_t>(block)].has_value(); }

  void SetIdle(int32_t block);
  void SetUsed(int32_t block);
  int64_t idle() const { return static_cast<int64_t>(idle_.size()); }
  // Forgets the block that was idle for longest, and returns it; absent if no block is idle.
  std::optional<int32_t> Evict();

 private:
  using Key = std::pair<int32_t, std::vector<int32_t>>;  // the block before, and the tokens

  const size_t block_tokens_;
  absl::flat_hash_map<Key, int32_t> blocks_;
  std::vector<std::optional<Key>> keys_;  // by block; absent: the block is not in this cache
  std::list<int32_t> idle_;               // the longest idle first
  std::vector<std::list<int32_t>::iterator> places_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_PREFIX_CACHE_H_
