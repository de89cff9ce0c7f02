#ifndef BOWLINE_RUNTIME_SERVE_BLOCK_POOL_H_
#define BOWLINE_RUNTIME_SERVE_BLOCK_POOL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/serve/prefix_cache.h"

namespace bowline::serve {

// The blocks of a paged cache. Block 0 is the null block. Each other block is free, owned by the sequences that refer
// to it, or cached: it has no owner, and keeps its tokens until its place is needed.
class BlockPool {
 public:
  BlockPool(int64_t blocks, int64_t block_tokens);

  // Takes a block for one owner: a free one, else the cached one unused for longest. Absent if all blocks are owned.
  std::optional<int32_t> Take();
  // Adds an owner to a block that is owned or cached.
  void Share(int32_t block);
  // Removes an owner. Owners release the blocks of a text from its end to its beginning; see PrefixCache.
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
