#ifndef BOWLINE_RUNTIME_SERVE_BLOCK_POOL_H_
#define BOWLINE_RUNTIME_SERVE_BLOCK_POOL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/serve/prefix_cache.h"

namespace bowline::serve {

// The blocks of a paged cache. Each but block 0, which is null, is free, owned by the sequences that refer to it, or
// cached: kept for its tokens until its place is needed.
class BlockPool {
 public:
  BlockPool(int64_t blocks, int64_t block_tokens);

  // A block for one owner: a free one, else the cached one that was not used for longest. Nothing where all are owned.
  std::optional<int32_t> Take();
  // One more owner of a block that is owned or cached.
  void Share(int32_t block);
  // One owner less. Owners give the blocks of a text back from its end to its begin; see PrefixCache.
  void Release(int32_t block);

  const PrefixCache& prefixes() const { return prefixes_; }
  PrefixCache& prefixes() { return prefixes_; }

  int32_t references(int32_t block) const { return references_[static_cast<size_t>(block)]; }
  int64_t size() const { return static_cast<int64_t>(references_.size()) - 1; }  // without the null block
  int64_t available() const { return static_cast<int64_t>(free_.size()) + prefixes_.idle(); }
  int64_t owned() const { return size() - available(); }
  const std::vector<int32_t>& free_blocks() const { return free_; }

 private:
  PrefixCache prefixes_;
  std::vector<int32_t> references_;
  std::vector<int32_t> free_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_BLOCK_POOL_H_
