//===- VerifyPlacement.cpp - The placement of all values, as passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/VerifyPlacement.h"

using namespace mlir;
using namespace bowline;

namespace {
class RecordWhole : public PassWrapper<RecordWhole, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecordWhole)

  explicit RecordWhole(std::shared_ptr<PlacementRecord> record) : record(std::move(record)) {}

  StringRef getArgument() const override { return "record-whole"; }
  StringRef getDescription() const override { return "Keep the program on whole tensors for verify-placement"; }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (!record->whole || splitsVariables())
      record->whole = getOperation().clone();
  }

private:
  /// Whether a variable has other dimensions than in the copy.
  bool splitsVariables() {
    return llvm::any_of(getOperation().getOps<graph::Variable>(), [&](graph::Variable variable) {
      auto before = record->whole->lookupSymbol<graph::Variable>(variable.getVariableName());
      return before && before.getTensorType() != variable.getTensorType();
    });
  }

  std::shared_ptr<PlacementRecord> record;
};

class VerifyPlacement : public PassWrapper<VerifyPlacement, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPlacement)

  explicit VerifyPlacement(std::shared_ptr<PlacementRecord> record) : record(std::move(record)) {}

  StringRef getArgument() const override { return "verify-placement"; }
  StringRef getDescription() const override {
    return "Compare the programs of ranks with the program on whole tensors";
  }

  void runOnOperation() override {
    PlacementChecker checker(std::move(record->whole));
    if (failed(checker.check(getOperation())))
      return signalPassFailure();
    record->summary = checker.summary();
    markAllAnalysesPreserved();
  }

private:
  std::shared_ptr<PlacementRecord> record;
};
} // namespace

std::unique_ptr<Pass> bowline::makeRecordWhole(std::shared_ptr<PlacementRecord> record) {
  return std::make_unique<RecordWhole>(std::move(record));
}

std::unique_ptr<Pass> bowline::makeVerifyPlacement(std::shared_ptr<PlacementRecord> record) {
  return std::make_unique<VerifyPlacement>(std::move(record));
}
