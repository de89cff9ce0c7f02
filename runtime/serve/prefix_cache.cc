#include "runtime/serve/prefix_cache.h"

#include <algorithm>
#include <cassert>

namespace bowline::serve {

PrefixCache::PrefixCache(int64_t blocks, int64_t block_tokens)
    : block_tokens_(static_cast<size_t>(block_tokens)),
      keys_(static_cast<size_t>(blocks)),
      places_(static_cast<size_t>(blocks), idle_.end()) {}

std::optional<int32_t> PrefixCache::Find(int32_t before, absl::Span<const int32_t> tokens) const {
  const auto found = blocks_.find(Key(before, std::vector<int32_t>(tokens.begin(), tokens.end())));
  return found == blocks_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

std::vector<int32_t> PrefixCache::Match(absl::Span<const int32_t> tokens, int64_t most) const {
  std::vector<int32_t> chain;
  for (size_t i = 0; i < static_cast<size_t>(most) && (i + 1) * block_tokens_ <= tokens.size(); ++i) {
    const auto block = Find(chain.empty() ? 0 : chain.back(), tokens.subspan(i * block_tokens_, block_tokens_));
    if (!block.has_value()) break;
    chain.push_back(*block);
  }
  return chain;
}

void PrefixCache::Insert(int32_t before, absl::Span<const int32_t> tokens, int32_t block) {
  assert(tokens.size() == block_tokens_ && !Holds(block));
  Key key(before, std::vector<int32_t>(tokens.begin(), tokens.end()));
  const bool is_new = blocks_.emplace(key, block).second;
  assert(is_new);
  static_cast<void>(is_new);
  keys_[static_cast<size_t>(block)] = std::move(key);
}

void PrefixCache::SetIdle(int32_t block) {
  assert(Holds(block) && places_[static_cast<size_t>(block)] == idle_.end());
  places_[static_cast<size_t>(block)] = idle_.insert(idle_.end(), block);
}

void PrefixCache::SetUsed(int32_t block) {
  auto& place = places_[static_cast<size_t>(block)];
  assert(place != idle_.end());
  idle_.erase(place);
  place = idle_.end();
}

std::optional<int32_t> PrefixCache::Evict() {
  if (idle_.empty()) return std::nullopt;
  const int32_t block = idle_.front();
  SetUsed(block);
  auto& key = keys_[static_cast<size_t>(block)];
  blocks_.erase(*key);
  key.reset();
  return block;
}

}  // namespace bowline::serve
