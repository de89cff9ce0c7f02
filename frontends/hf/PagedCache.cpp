//===- PagedCache.cpp - Where a model that is served keeps keys and values
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/PagedCache.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Program/ElementTypes.h"
#include "types/cache_rows.h"
#include "types/computed_types.h"

#include <utility>

using namespace mlir;
using namespace bowline;
using namespace bowline::hf;

static bool isInt8(StringRef type) { return std::string_view(type) == kInt8Rows; }

bool hf::isCacheType(StringRef type) {
  std::optional<ElementType> element = ElementTypeFromName(std::string_view(type));
  return isInt8(type) || (element && IsComputedIn(*element));
}

std::string hf::cacheTypeNames() { return NamesOf(&IsComputedIn) + ", " + std::string(kInt8Rows); }

int64_t hf::bytesOfCacheRow(StringRef type, int64_t width) {
  if (isInt8(type))
    return Int8RowBytes(width);
  return width * static_cast<int64_t>(SizeOf(*ElementTypeFromName(std::string_view(type))));
}

/// The state that one layer has of keys, or of values.
static RankedTensorType cacheTypeOf(MLIRContext *context, const ServeSizes &sizes, int64_t heads, int64_t width) {
  ElementType element = isInt8(sizes.cacheType) ? ElementType::kU8 : *ElementTypeFromName(sizes.cacheType);
  int64_t row = isInt8(sizes.cacheType) ? Int8RowBytes(width) : width;
  return RankedTensorType::get({sizes.blocks, sizes.blockTokens, heads, row}, toMlirType(context, element));
}

/// The format of rows of a cache of bytes; null of any other one.
static StringAttr formatOf(Builder &builder, RankedTensorType cache) {
  return cache.getElementType().isUnsignedInteger(8) ? builder.getStringAttr(StringRef(kInt8Rows)) : StringAttr();
}

static std::string nameOf(int64_t layer, StringRef what) { return ("cache." + Twine(layer) + "." + what).str(); }

void PagedCache::declare(ImplicitLocOpBuilder &builder, const ServeSizes &sizes, int64_t layers, int64_t heads,
                         int64_t width) {
  RankedTensorType type = cacheTypeOf(builder.getContext(), sizes, heads, width);
  auto zero = graph::FillAttr::get(builder.getContext(), builder.getF64FloatAttr(0));
  for (int64_t layer = 0; layer < layers; ++layer)
    for (StringRef what : {"keys", "values"})
      graph::StateOp::create(builder, nameOf(layer, what), StateFlags::Cache, type, zero);
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Without the first dimension, which is 1.
static Value rowsOf(ImplicitLocOpBuilder &builder, Value value) {
  return graph::ReshapeOp::create(builder, typeOf(value).clone(typeOf(value).getShape().drop_front()), value);
}

Value PagedCache::attend(ImplicitLocOpBuilder &builder, Value query, Value key, Value value, APFloat scale,
                         int64_t window) {
  auto symbols = SymbolTable(builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>());
  auto write = [&](StringRef what, Value rowsToWrite) -> Value {
    std::string name = nameOf(layer, what);
    RankedTensorType type = symbols.lookup<graph::StateOp>(name).getTensorType();
    Value cache = graph::ReadOp::create(builder, type, name);
    Value written = graph::CacheWriteOp::create(builder, cache, rowsOf(builder, rowsToWrite), rows, lengths, blocks,
                                                formatOf(builder, type))
                        .getResult();
    graph::WriteOp::create(builder, name, written);
    return written;
  };
  Value keys = write("keys", key), values = write("values", value);
  ++layer;
  Value attended = graph::PagedAttentionOp::create(builder, rowsOf(builder, query), keys, values, rows, lengths, blocks,
                                                   std::move(scale), window, formatOf(builder, typeOf(keys)))
                       .getResult();
  return graph::ReshapeOp::create(builder, typeOf(query), attended);
}
