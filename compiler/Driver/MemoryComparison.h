//===- MemoryComparison.h - The memory of a plan beside its formulas
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MEMORYCOMPARISON_H
#define BOWLINE_COMPILER_DRIVER_MEMORYCOMPARISON_H

#include "compiler/Driver/MemoryFormula.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

#include <string>
#include <vector>

namespace bowline {

/// The formulas of docs/memory.md beside a plan.
struct MemoryComparison {
  std::string table;              ///< rows of formulas and of the plan, for the role that needs the most
  std::vector<std::string> notes; ///< sentences about choices that do not pay
};

/// Compares a plan for training with the formulas for \p inputs; \p links are those of the compilation. Ranks have the
/// layers that the plan gives them. Writes the plan for that, which fills in its hashes and versions; errors are those
/// of WritePlan and costModelOf.
absl::StatusOr<MemoryComparison> compareWithFormulas(fbs::PlanT &plan, MemoryInputs inputs,
                                                     const std::vector<std::string> &links);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYCOMPARISON_H
