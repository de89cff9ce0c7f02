//===- ServeSizes.cpp - Sizes that a plan for serving has room for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "absl/strings/str_cat.h"
#include "compiler/Driver/CompileSetup.h"
#include "runtime/base/gguf_model.h"
#include "types/block_formats.h"

using namespace mlir;
using namespace bowline;

absl::Status bowline::checkServeOptions(const CompileOptions &options) {
  // Products of these with sizes of a model do not overflow.
  constexpr int64_t kMost = int64_t{1} << 20;
  auto check = [&](StringRef flag, int64_t value, int64_t least, int64_t most = kMost) {
    if (value >= least && value <= most)
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag.str(), " must be ", least, " to ", most, ", got ", value));
  };
  for (int64_t bucket : options.buckets)
    BOWLINE_RETURN_IF_ERROR(check("--buckets", bucket, 1));
  BOWLINE_RETURN_IF_ERROR(check("--max-batch", options.maxBatch, 1));
  BOWLINE_RETURN_IF_ERROR(check("--max-context", options.maxContext, 0));
  BOWLINE_RETURN_IF_ERROR(check("--block-tokens", options.blockTokens, 1));
  return check("--kv-blocks", options.cacheBlocks, 0, int64_t{1} << 30);
}

/// Bytes of a block in the caches of all layers together.
static int64_t bytesOfBlock(const hf::ModelConfig &config, const hf::ServeSizes &sizes) {
  // Another type is refused where the model is imported.
  StringRef type = hf::isCacheType(sizes.cacheType) ? StringRef(sizes.cacheType) : "f32";
  return 2 * config.layers * sizes.blockTokens * config.kvHeads * hf::bytesOfCacheRow(type, config.headDim);
}

hf::ServeSizes bowline::serveSizesOf(const CompileOptions &options, const hf::ModelConfig &config,
                                     std::vector<std::string> &remarks) {
  hf::ServeSizes sizes;
  sizes.buckets = options.buckets;
  sizes.sequences = options.maxBatch;
  sizes.context = options.maxContext > 0 ? options.maxContext : std::min(config.maxPositions, kDefaultContext);
  sizes.blockTokens = std::max<int64_t>(options.blockTokens, 1);
  sizes.cacheType = options.cacheType;
  sizes.logits = options.withLogits;
  sizes.blocks = options.cacheBlocks + 1;
  if (options.cacheBlocks > 0)
    return sizes;
  int64_t bytes = options.cacheBytes > 0 ? static_cast<int64_t>(options.cacheBytes) : kDefaultCacheBytes;
  int64_t most = std::max<int64_t>(bytes / bytesOfBlock(config, sizes), sizes.listed());
  int64_t wanted = std::min<int64_t>(sizes.sequences, int64_t{1} << 20) * sizes.listed();
  sizes.blocks = std::min(most, wanted) + 1;
  // A caller that sets `cacheBytes` knows the limit, and needs no remark on it.
  if (wanted > most && options.cacheBytes == 0)
    remarks.push_back(absl::StrCat("the cache has ", most, " blocks of ", sizes.blockTokens, " tokens, ",
                                   most * bytesOfBlock(config, sizes) >> 20, " MiB, and so room for ",
                                   most * sizes.blockTokens,
                                   " tokens of all sequences together; choose another size "
                                   "with --kv-blocks"));
  return sizes;
}

absl::StatusOr<std::map<std::string, ElementType>> bowline::storedBlocksOf(const std::string &path) {
  BOWLINE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(path));
  std::map<std::string, ElementType> blocks;
  for (const GgufModel::Tensor &tensor : model.tensors())
    for (const ElementTypeInfo &info : kElementTypes)
      if (IsBlockFormat(info.type) && info.gguf == static_cast<int>(tensor.stored->type->number))
        blocks[tensor.key] = info.type;
  return blocks;
}
