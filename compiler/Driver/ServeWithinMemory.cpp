//===- ServeWithinMemory.cpp - The cache that a limit of memory leaves room for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "absl/strings/str_cat.h"
#include "compiler/Driver/Compile.h"
#include "compiler/Driver/CompileSetup.h"
#include "runtime/plan/view/plan_view.h"

using namespace bowline;

namespace {

/// The cache of a plan for serving.
struct PlannedCache {
  int64_t blocks = 0, blockTokens = 0; ///< blocks without the one that holds nothing
  int64_t ofContext = 0;               ///< blocks that the longest sequence needs
  int64_t blockBytes = 0;              ///< of a block in all layers, on the rank with the most
};

} // namespace

static PlannedCache cacheOf(const fbs::PlanT &plan) {
  PlannedCache cache;
  for (const auto &entry : plan.entries)
    if (entry->kind == fbs::EntryKind::Step && entry->sequences) {
      cache.blocks = int64_t{entry->sequences->block_count} - 1;
      cache.blockTokens = entry->sequences->block_tokens;
      const fbs::PortT &table = *entry->inputs[entry->sequences->blocks];
      cache.ofContext = plan.buffers[table.buffer]->shape[1];
    }
  uint64_t bytes = 0;
  for (const auto &state : plan.states)
    if (Has(state->flags, fbs::StateFlag::Cache))
      bytes += plan.buffers[state->buffer]->bytes;
  cache.blockBytes = static_cast<int64_t>(bytes) / (cache.blocks + 1);
  return cache;
}

// Everything but the cache is known once a plan is made: first the plan with the least cache and nothing that more
// memory would buy, then the one whose cache takes the rest.
absl::StatusOr<CompileResult> bowline::compileServeWithinMemory(const CompileOptions &options) {
  CompileOptions attempt = options;
  attempt.cacheBytes = 1;
  attempt.memoryLimit = 1;
  BOWLINE_ASSIGN_OR_RETURN(CompileResult least, compileModel(attempt));
  if (!least.plan || least.plan->arena_bytes > options.memoryLimit)
    return least; // the caller that asked for the limit says that it is too low
  const PlannedCache cache = cacheOf(*least.plan);
  auto more = static_cast<int64_t>(options.memoryLimit - least.plan->arena_bytes) / cache.blockBytes;
  attempt.memoryLimit = options.memoryLimit;
  attempt.cacheBytes = 0;
  for (int64_t blocks = std::min(cache.blocks + more, options.maxBatch * cache.ofContext); blocks > cache.blocks;) {
    attempt.cacheBlocks = blocks;
    BOWLINE_ASSIGN_OR_RETURN(CompileResult result, compileModel(attempt));
    if (result.plan->arena_bytes <= options.memoryLimit) {
      result.remarks.push_back(absl::StrCat("the cache has ", blocks, " blocks of ", cache.blockTokens, " tokens, ",
                                            blocks * cache.blockBytes >> 20, " MiB, within the memory limit"));
      return result;
    }
    // Larger caches are aligned to more.
    blocks -= 1 + static_cast<int64_t>(result.plan->arena_bytes - options.memoryLimit) / cache.blockBytes;
  }
  return least;
}
