//===- PlanDialect.cpp - The plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanDialect.h"
#include "dialects/Plan/PlanOps.h"

using namespace bowline::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"

void PlanDialect::initialize() {
  registerAttributes();
  registerOps();
}
