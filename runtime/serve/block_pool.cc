#include "runtime/serve/block_pool.h"

#include <cassert>

namespace bowline::serve {

BlockPool::BlockPool(int64_t blocks, int64_t block_tokens)
    : prefixes_(blocks, block_tokens), references_(static_cast<size_t>(blocks)) {
  for (int64_t block = blocks - 1; block > 0; --block) free_.push_back(static_cast<int32_t>(block));
}

std::optional<int32_t> BlockPool::Take() {
  std::optional<int32_t> block;
  if (free_.empty()) {
    block = prefixes_.Evict();
    if (!block.has_value()) return std::nullopt;
  } else {
    block = free_.back();
    free_.pop_back();
  }
  references_[static_cast<size_t>(*block)] = 1;
  return block;
}

void BlockPool::Share(int32_t block) {
  int32_t& references = references_[static_cast<size_t>(block)];
  if (references == 0) prefixes_.SetUsed(block);
  ++references;
}

void BlockPool::Release(int32_t block) {
  int32_t& references = references_[static_cast<size_t>(block)];
  assert(references > 0);
  if (--references > 0) return;
  if (prefixes_.Holds(block)) {
    prefixes_.SetIdle(block);
  } else {
    free_.push_back(block);
  }
}

}  // namespace bowline::serve
