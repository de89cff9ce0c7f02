//===- LibrarySums.cpp - Let a library sum operands of products
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "passes/Fusion/Epilogues/ProductSum.h"
#include "passes/Fusion/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_LIBRARYSUMS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class LibrarySums : public bowline::impl::LibrarySumsBase<LibrarySums> {
public:
  using LibrarySumsBase::LibrarySumsBase;

  void runOnProgram() override {
    FailureOr<ModuleTarget> target = ModuleTarget::of(getOperation());
    if (failed(target))
      return signalPassFailure();
    SmallVector<graph::ReduceOp> sums;
    // By name: only this operation reduces and does nothing else.
    getOperation().walk([&](graph::ReduceOp sum) {
      if (!isa<graph::FusionOp>(sum->getParentOp()))
        sums.push_back(sum);
    });
    for (graph::ReduceOp sum : sums) {
      std::optional<ProductSum> found = ProductSum::match(sum, *target);
      if (!found)
        continue;
      graph::FusionOp fused = found->fuse();
      remark::passed(fused.getLoc(), remark::RemarkOpts::name("LibrarySums").category("fusion"))
          << llvm::formatv("a library computes '{0}' with a product", fused.getEpilogue()->str()).str();
    }
  }
};

} // namespace
