//===- OpSupport.h - Shared by the operations' definitions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_OPS_OPSUPPORT_H
#define BOWLINE_DIALECTS_GRAPH_OPS_OPSUPPORT_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "types/block_formats.h"

namespace bowline::graph {

using mlir::RankedTensorType;
using mlir::Value;

inline RankedTensorType tensorType(mlir::Type type) { return llvm::cast<RankedTensorType>(type); }

/// `[0, rank)` without `dims`, in order.
llvm::SmallVector<int64_t> otherDims(int64_t rank, llvm::ArrayRef<int64_t> dims);

/// `shape` without `dims`.
llvm::SmallVector<int64_t> withoutDims(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);

/// Fails with a diagnostic unless every dimension is in [0, rank) and none is named twice.
llvm::LogicalResult checkDims(std::optional<mlir::Location> loc, llvm::StringRef what, llvm::ArrayRef<int64_t> dims,
                              int64_t rank, bool increasing);

/// The type of statistics over elements of `elementType`: f64 for f64, else f32.
mlir::Type statisticsType(mlir::Type elementType);

/// Fails with a diagnostic unless the type is [rows, blocks of a row, bytes of a block of `format`].
llvm::LogicalResult checkBlocks(std::optional<mlir::Location> loc, RankedTensorType type, llvm::StringRef format);

/// A splat constant of `type`.
Value constantLike(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, double value);

/// The sum over `dims`; `input` itself where there are none.
Value sumOver(mlir::ImplicitLocOpBuilder &builder, Value input, llvm::ArrayRef<int64_t> dims);

/// `value` repeated along `newDims` of `type`.
Value broadcastAlong(mlir::ImplicitLocOpBuilder &builder, Value value, RankedTensorType type,
                     llvm::ArrayRef<int64_t> newDims);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_OPS_OPSUPPORT_H
