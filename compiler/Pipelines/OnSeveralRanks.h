//===- OnSeveralRanks.h - A pass for programs of several ranks alone
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PIPELINES_ONSEVERALRANKS_H
#define BOWLINE_COMPILER_PIPELINES_ONSEVERALRANKS_H

#include "mlir/Pass/Pass.h"

#include <functional>

namespace bowline {

/// A pass that runs the pass of `create` where the module's mesh has more than one rank, and does nothing otherwise.
std::unique_ptr<mlir::Pass> createOnSeveralRanks(std::function<std::unique_ptr<mlir::Pass>()> create);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_ONSEVERALRANKS_H
