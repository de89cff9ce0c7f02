//===- SequenceInputs.cpp - Inputs that keep the promise about sequences
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/SequenceInputs.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace bowline;

std::optional<SequenceInput> bowline::sequenceInputOf(Operation *owner, StringRef name,
                                                      function_ref<RankedTensorType(StringRef)> typeOf) {
  auto attr = owner->getAttrOfType<plan::SequencesAttr>(plan::PlanDialect::kSequencesAttr);
  if (!attr)
    return std::nullopt;
  RankedTensorType rows = typeOf(attr.getRows()), lengths = typeOf(attr.getLengths()),
                   blocks = typeOf(attr.getBlocks());
  if (!rows || !lengths || !blocks || rows.getRank() != 1 || lengths.getRank() != 1 || blocks.getRank() != 2 ||
      rows.getDimSize(0) != lengths.getDimSize(0) + 1 || blocks.getDimSize(0) != lengths.getDimSize(0))
    return std::nullopt;
  SequenceSizes sizes = {.sequences = blocks.getDimSize(0),
                         .listed = blocks.getDimSize(1),
                         .tokens = attr.getTokens(),
                         .block_tokens = attr.getBlockTokens(),
                         .block_count = attr.getBlockCount()};
  if (name == attr.getRows())
    return SequenceInput{SequenceInput::Which::Rows, sizes};
  if (name == attr.getLengths())
    return SequenceInput{SequenceInput::Which::Lengths, sizes};
  if (name == attr.getBlocks())
    return SequenceInput{SequenceInput::Which::Blocks, sizes};
  return std::nullopt;
}

namespace {
class Draws {
public:
  explicit Draws(PhiloxKey key) : key(key) {}

  /// From 0 to `most`.
  int64_t upTo(int64_t most) {
    double uniform = UniformBlock(key, next / 4)[next % 4];
    ++next;
    return std::min(most, static_cast<int64_t>(std::floor(uniform * static_cast<double>(most + 1))));
  }

private:
  PhiloxKey key;
  uint64_t next = 0;
};
} // namespace

/// The blocks from 1 on in a random order.
static std::vector<int32_t> shuffledBlocks(int64_t count, Draws &draws) {
  std::vector<int32_t> blocks;
  for (int64_t block = 1; block < count; ++block)
    blocks.push_back(static_cast<int32_t>(block));
  for (size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[draws.upTo(static_cast<int64_t>(i) - 1)]);
  return blocks;
}

DrawnSequences bowline::drawSequences(const SequenceSizes &sizes, PhiloxKey key) {
  Draws draws(key);
  DrawnSequences drawn;
  drawn.rows = {0};
  drawn.blocks.assign(sizes.sequences * sizes.listed, 0);
  std::vector<int32_t> free = shuffledBlocks(sizes.block_count, draws);
  int64_t each = std::min(sizes.listed, (sizes.block_count - 1) / sizes.sequences);
  int64_t sharedBy = -1; // a sequence whose first block others may read
  for (int64_t sequence = 0; sequence < sizes.sequences; ++sequence) {
    bool isLast = sequence + 1 == sizes.sequences;
    int64_t left = std::min<int64_t>(sizes.tokens - drawn.rows.back(), each * sizes.block_tokens);
    int64_t rows = isLast ? left : draws.upTo(std::min<int64_t>(left, 1 + sizes.tokens / 2));
    int64_t past = draws.upTo(each * sizes.block_tokens - rows);
    int64_t used = rows == 0 ? 0 : (past + rows + sizes.block_tokens - 1) / sizes.block_tokens;
    drawn.rows.push_back(static_cast<int32_t>(drawn.rows.back() + rows));
    drawn.lengths.push_back(static_cast<int32_t>(rows == 0 ? 0 : past + rows));
    auto table = drawn.blocks.begin() + sequence * sizes.listed;
    for (int64_t place = 0; place < used; ++place) {
      table[place] = free.back();
      free.pop_back();
    }
    bool readsFirst = used > 0 && past >= sizes.block_tokens;
    if (readsFirst && sharedBy >= 0 && draws.upTo(1) == 1)
      table[0] = drawn.blocks[sharedBy * sizes.listed];
    else if (readsFirst && sharedBy < 0)
      sharedBy = sequence;
  }
  return drawn;
}
