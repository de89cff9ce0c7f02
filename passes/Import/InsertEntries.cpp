//===- InsertEntries.cpp - Make the model's functions callable
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
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

  void runOnProgram() override {
    ModuleOp module = getOperation();
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    if (module.getOps<dist::MeshOp>().empty())
      dist::MeshOp::create(builder, module.getLoc(), "mesh", builder.getStrArrayAttr({"dp"}), ArrayRef<int64_t>{1});
    builder.setInsertionPointToEnd(module.getBody());
    insert(builder, graph::FunctionPart::Loss, EntryKind::EvalStep);
    insert(builder, graph::FunctionPart::Generate, EntryKind::Generate);
    if (failed(insertSteps(builder)))
      signalPassFailure();
  }

private:
  /// An entry for each step of serving, whose bucket is the most tokens that its callers promise.
  LogicalResult insertSteps(OpBuilder &builder) {
    ModuleOp module = getOperation();
    if (graph::EntryOp::find(module, EntryKind::Step))
      return success();
    SymbolTable symbols(module);
    for (auto function : llvm::to_vector(module.getOps<graph::FuncOp>())) {
      if (function.getPart() != graph::FunctionPart::Step)
        continue;
      auto sequences = function->getAttrOfType<plan::SequencesAttr>(plan::PlanDialect::kSequencesAttr);
      if (!sequences)
        return function.emitOpError("is a step of serving, and says nothing of its sequences; add '")
               << plan::PlanDialect::kSequencesAttr << "'";
      auto entry = graph::EntryOp::create(builder, function.getLoc(), EntryKind::Step,
                                          ("step_" + Twine(sequences.getTokens())).str(),
                                          builder.getArrayAttr(FlatSymbolRefAttr::get(function)), ArrayRef<int64_t>{1});
      entry.setBucket(sequences.getTokens());
      symbols.insert(entry);
    }
    return success();
  }

  /// An entry that runs one function, named after its kind, unless the module has one.
  void insert(OpBuilder &builder, graph::FunctionPart part, EntryKind kind) {
    ModuleOp module = getOperation();
    auto function = graph::FuncOp::find(module, part);
    if (!function || graph::EntryOp::find(module, kind))
      return;
    SymbolTable symbols(module);
    symbols.insert(graph::EntryOp::create(builder, function.getLoc(), kind, stringifyEntryKind(kind),
                                          builder.getArrayAttr(FlatSymbolRefAttr::get(function)),
                                          ArrayRef<int64_t>{1}));
  }
};

} // namespace
