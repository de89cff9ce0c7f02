//===- PlanDialect.h - The plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_PLAN_PLANDIALECT_H
#define BOWLINE_DIALECTS_PLAN_PLANDIALECT_H

#include "mlir/IR/Dialect.h"

#include "dialects/Plan/PlanDialect.h.inc"

#endif // BOWLINE_DIALECTS_PLAN_PLANDIALECT_H
