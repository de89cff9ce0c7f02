//===- OnEachRank.h - A pass for the program of each rank of a pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PIPELINES_ONEACHRANK_H
#define BOWLINE_COMPILER_PIPELINES_ONEACHRANK_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace bowline {

/// A pass that runs `pass` on every nested module, or on the module itself where it has none: before and after
/// `split-stages` alike.
std::unique_ptr<mlir::Pass> createOnEachRank(std::unique_ptr<mlir::Pass> pass);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_ONEACHRANK_H
