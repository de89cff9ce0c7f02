//===- CheckedData.cpp - Bounds of row numbers and of offsets of groups of rows
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/CheckedData.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "dialects/Graph/Movement.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Stage/StageOps.h"
#include "kernels/registry/data_check.h"
#include "passes/Analysis/KernelSignature.h"

using namespace mlir;
using namespace bowline;

static void lower(std::optional<int64_t> &bound, std::optional<int64_t> other) {
  if (other)
    bound = bound ? std::min(*bound, *other) : other;
}

void CheckedData::restrict(const CheckedData &other) {
  lower(limit, other.limit);
  lower(rows, other.rows);
}

/// The bounds that a kernel sets on argument `index`; `rowsOf` gives the number of rows for the kernel's check.
static CheckedData checkedArgument(StringRef kernel, size_t index,
                                   function_ref<int64_t(const kernels::DataCheck &)> rowsOf) {
  const kernels::DataCheck *check = kernels::FindDataCheck(std::string_view(kernel));
  if (!check || check->argument != index)
    return {};
  int64_t rows = rowsOf(*check);
  return check->is_row ? CheckedData{rows, std::nullopt} : CheckedData{std::nullopt, rows};
}

static void addUses(Value tensor, bool inOrder, CheckedData &data) {
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (auto model = dyn_cast<graph::KernelModel>(user)) {
      auto rowsOf = [&](const kernels::DataCheck &check) {
        return cast<RankedTensorType>(tableOf(user, check).getType()).getDimSize(0);
      };
      CheckedData own = checkedArgument(model.kernelName(), use.getOperandNumber(), rowsOf);
      if (!inOrder && own.rows) // in any order all of them ascend only if they are equal
        own.limit = 1;
      data.restrict(own);
    }
    if (graph::movedBy(user) == tensor || isa<dist::ReshardOp, stage::TransferOp>(user))
      addUses(user->getResult(0), inOrder && (!graph::movedBy(user) || graph::movedBy(user, /*inOrder=*/true)), data);
  }
}

CheckedData bowline::checkedDataOf(Value tensor) {
  CheckedData data;
  if (isa<IntegerType>(getElementTypeOrSelf(tensor)))
    addUses(tensor, /*inOrder=*/true, data);
  return data;
}

CheckedData bowline::checkedDataOf(ModuleOp role, Value buffer) {
  CheckedData data;
  SymbolTable symbols(role);
  for (OpOperand &use : buffer.getUses()) {
    auto launch = dyn_cast<plan::LaunchOp>(use.getOwner());
    auto kernel = launch ? symbols.lookup<plan::KernelOp>(launch.getKernel()) : nullptr;
    if (kernel && kernel.getRegistered())
      data.restrict(
          checkedArgument(*kernel.getRegistered(), use.getOperandNumber(), [&](const kernels::DataCheck &check) {
            size_t argument = check.rows;
            for (size_t i = 0; argument == kernels::kResult && i < kernel.getNumArguments(); ++i)
              if (kernel.getArgument(i).getAccess() == plan::Access::Write)
                argument = i;
            return kernel.getArgument(argument).getType().getDimSize(0);
          }));
  }
  return data;
}
