//===- PlanOps.h - Operations and types of the plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PLAN_PLANOPS_H
#define BOWLINE_DIALECTS_PLAN_PLANOPS_H

#include "dialects/Plan/PlanAttrs.h"
#include "dialects/Plan/PlanDialect.h"
#include "dialects/Program/ProgramEnums.h"
#include "kernels/registry/collectives.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace bowline::plan {

/// The size in bytes of a dense tensor; each element is rounded up to whole bytes.
int64_t byteCount(mlir::RankedTensorType type);

} // namespace bowline::plan

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.h.inc"

#include "dialects/Plan/PlanInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

#endif // BOWLINE_DIALECTS_PLAN_PLANOPS_H
