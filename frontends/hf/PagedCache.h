//===- PagedCache.h - Where a model that is served keeps keys and values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_PAGEDCACHE_H
#define BOWLINE_FRONTENDS_HF_PAGEDCACHE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bowline::hf {

/// L: most likely tokens that a step gives beside each token, at most: as many as OpenAI's API has.
inline constexpr int64_t kLikelyTokens = 20;

/// The sizes that a plan for serving has room for.
struct ServeSizes {
  std::vector<int64_t> buckets;  // T of each step: the tokens that it computes; ascending
  int64_t sequences = 0;         // R: sequences of a step, at most; one of T tokens has at most T
  int64_t context = 0;           // tokens of a sequence, at most the model's maxPositions
  int64_t blockTokens = 0;       // S: tokens that a block of a cache holds
  int64_t blocks = 0;            // N: blocks of each cache, of which the first one holds nothing
  std::string cacheType = "f32"; // elements of caches: those of types/computed_types.h, or int8 (types/cache_rows.h)
  bool logits = false;           // results of a step have the logits that tokens are drawn from

  /// M: blocks that a table lists.
  int64_t listed() const { return (context + blockTokens - 1) / blockTokens; }
};

/// Returns whether caches may be of the type.
bool isCacheType(llvm::StringRef type);
/// The types that caches may be of, for messages.
std::string cacheTypeNames();
/// Bytes that one head of one token takes in a cache of the type, which is one.
int64_t bytesOfCacheRow(llvm::StringRef type, int64_t width);

/// The values of one step that say where its sequences are, and the attention of layers that find keys and values by
/// them. Each layer has two states, "cache.L.keys" and "cache.L.values" of [N, S, K, D], or of bytes [N, S, K, bytes of
/// a row].
class PagedCache {
public:
  PagedCache(mlir::Value rows, mlir::Value lengths, mlir::Value blocks, mlir::Value positions)
      : rows(rows), lengths(lengths), blocks(blocks), ofRows(positions) {}

  /// Declares the states of so many layers at the insertion point.
  static void declare(mlir::ImplicitLocOpBuilder &builder, const ServeSizes &sizes, int64_t layers, int64_t heads,
                      int64_t width);

  /// The position of each row [T].
  mlir::Value positions() const { return ofRows; }

  /// The next layer, in the order of calls: puts key and value [1, T, K, D] into its caches, and gives the attention
  /// [1, T, H, D] of the query to the contents of these caches.
  mlir::Value attend(mlir::ImplicitLocOpBuilder &builder, mlir::Value query, mlir::Value key, mlir::Value value,
                     llvm::APFloat scale, int64_t window);

private:
  mlir::Value rows, lengths, blocks, ofRows;
  int64_t layer = 0;
};

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_PAGEDCACHE_H
