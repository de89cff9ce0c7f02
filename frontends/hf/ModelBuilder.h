//===- ModelBuilder.h - Shared by the families' graphs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_MODELBUILDER_H
#define BOWLINE_FRONTENDS_HF_MODELBUILDER_H

#include "frontends/hf/ModelConfig.h"
#include "frontends/hf/PagedCache.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

#include "types/element_type.h"

#include <map>
#include <optional>
#include <string>

namespace bowline::hf {

using mlir::Value;

/// Builds operations on activations [B, S, ...], each at the location set last.
class ModelBuilder {
public:
  ModelBuilder(mlir::MLIRContext &context, const ModelConfig &config);

  mlir::ImplicitLocOpBuilder &ops() { return builder; }

  /// Following operations belong to this module of the Hugging Face model.
  void at(const llvm::Twine &modulePath);

  /// Declares all parameters at the insertion point. Matrices whose keys are among `blocks` have that format of blocks
  /// of bits.
  void declareParameters(const std::map<std::string, ElementType> &blocks = {});

  /// From now on layers are those of a step of serving, whose attention finds keys and values in a cache.
  void serveFrom(PagedCache pagedCache) { cache = pagedCache; }

  bool serves() const { return cache.has_value(); }

  /// The positions [S] of rows: those of their sequences in a step of serving, and else 0 to S - 1.
  Value positions(int64_t length);

  /// The value of a parameter, by symbol.
  Value read(const llvm::Twine &symbol);

  /// Rows of a parameter [V, D], which may be in blocks of bits, by their numbers [...].
  Value rows(const llvm::Twine &symbol, Value numbers);
  /// Rows of the parameter "embed" by the numbers of tokens [B, S].
  Value embed(Value tokens) { return rows("embed", tokens); }

  /// x [..., in] times a weight stored as [out, in], as torch.nn.Linear does, which may be in blocks of bits.
  Value linear(Value x, Value weight);
  /// x [..., in] times a weight stored as [in, out], as GPT-2's Conv1D does, or in blocks of bits as [out, in].
  Value linearTransposed(Value x, Value weight);
  /// x [..., D] plus bias [D].
  Value addBias(Value x, Value bias);
  Value add(Value lhs, Value rhs);
  Value multiply(Value lhs, Value rhs);
  Value reshape(Value x, llvm::ArrayRef<int64_t> shape);
  /// Columns [begin, begin + size) of the last dimension.
  Value columns(Value x, int64_t begin, int64_t size);
  /// Causal attention with the usual scale, of each layer once in their order; query [B, S, H, Dh], key and value [B,
  /// S, K, Dh]. A window of 0 is none.
  Value causalAttention(Value query, Value key, Value value, int64_t window = 0);

  /// [B, S, heads * Dh] to [B, S, heads, Dh], and back.
  Value splitHeads(Value x, int64_t heads);
  Value mergeHeads(Value x);

  mlir::RankedTensorType typeOf(Value value) const { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
  mlir::RankedTensorType f32(llvm::ArrayRef<int64_t> shape);
  mlir::RankedTensorType i32(llvm::ArrayRef<int64_t> shape);

private:
  /// x [..., in] times a weight [out, in] in blocks of bits; null where the weight is in none.
  Value multiplyBlocks(Value x, Value weight);
  Value contract(Value x, Value weight, int64_t weightDim);

  const ModelConfig &config;
  mlir::ImplicitLocOpBuilder builder;
  llvm::StringMap<mlir::RankedTensorType> parameterTypes;
  llvm::StringMap<std::string> formats; // of parameters in blocks of bits
  std::optional<PagedCache> cache;
};

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_MODELBUILDER_H
