//===- Traffic.h - Bytes that operations read and write
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_GROUPS_TRAFFIC_H
#define BOWLINE_PASSES_FUSION_GROUPS_TRAFFIC_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace bowline {

/// Module attribute of measure-traffic: bytes per entry, a dictionary of numbers.
inline constexpr llvm::StringLiteral kUnfusedBytesAttr = "plan.unfused_bytes";

/// The bytes of a tensor of static shape; elements of less than a byte take one.
int64_t bytesOfTensor(mlir::Value value);

/// The bytes that `op` would read and write as a separate kernel. A broadcast operand counts with the size of its
/// source. Zero for operations without a kernel: reads and writes of variables, reshapes, constants, broadcasts.
int64_t trafficOf(mlir::Operation *op);

/// The sum over all operations of `block`.
int64_t trafficOf(mlir::Block &block);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_GROUPS_TRAFFIC_H
