//===- InsertEntries.cpp - Make the model's functions callable
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Import/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_INSERTENTRIES
#include "passes/Import/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class InsertEntries : public bowline::impl::InsertEntriesBase<InsertEntries> {
public:
  using InsertEntriesBase::InsertEntriesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    if (module.getOps<dist::MeshOp>().empty())
      dist::MeshOp::create(builder, module.getLoc(), "mesh", builder.getStrArrayAttr({"dp"}), ArrayRef<int64_t>{1});
    builder.setInsertionPointToEnd(module.getBody());
    if (auto loss = module.lookupSymbol<graph::FuncOp>("loss"))
      insert(builder, loss, "eval_step");
    if (auto generate = module.lookupSymbol<graph::FuncOp>("generate")) {
      // The entry takes the name that a caller knows.
      auto name = StringAttr::get(&getContext(), "generate_logits");
      if (failed(SymbolTable::replaceAllSymbolUses(generate, name, module))) {
        generate.emitOpError("cannot be renamed to @generate_logits: the module has operations of unknown meaning");
        return signalPassFailure();
      }
      generate.setSymNameAttr(name);
      insert(builder, generate, "generate");
    }
  }

private:
  static void insert(OpBuilder &builder, graph::FuncOp function, StringRef name) {
    graph::EntryOp::create(builder, function.getLoc(), name, builder.getArrayAttr(FlatSymbolRefAttr::get(function)),
                           ArrayRef<int64_t>{1});
  }
};

} // namespace
