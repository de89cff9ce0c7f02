//===- LibraryEpilogues.cpp - Let a library compute elementwise work with products
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "passes/Fusion/Epilogues/LibraryEpilogue.h"
#include "passes/Fusion/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_LIBRARYEPILOGUES
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class LibraryEpilogues : public bowline::impl::LibraryEpiloguesBase<LibraryEpilogues> {
public:
  using LibraryEpiloguesBase::LibraryEpiloguesBase;

  void runOnProgram() override {
    FailureOr<ModuleTarget> target = ModuleTarget::of(getOperation());
    if (failed(target))
      return signalPassFailure();
    // Recomputation of cheap values drops both results of GELU, if they are a group of their own.
    StringRef recompute = dist::recomputeOf(getOperation());
    bool keepsInput = recompute != "selective" && recompute != "auto";
    SmallVector<graph::FusionOp> groups;
    getOperation().walk([&](graph::FusionOp group) { groups.push_back(group); });
    for (graph::FusionOp group : groups)
      if (auto epilogue = LibraryEpilogue::match(group, *target, keepsInput))
        fuse(*epilogue);
  }

private:
  static void fuse(LibraryEpilogue &epilogue) {
    std::string text = llvm::formatv("a library computes '{0}' with a product, saved {1:F1} MiB of traffic",
                                     epilogue.name(), epilogue.savedBytes() / double(1 << 20));
    graph::FusionOp fused = epilogue.fuse();
    remark::passed(fused.getLoc(), remark::RemarkOpts::name("LibraryEpilogues").category("fusion")) << text;
  }
};

} // namespace
