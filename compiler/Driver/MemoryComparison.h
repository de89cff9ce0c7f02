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

/// The predictions of docs/memory.md, compared with a plan.
struct MemoryComparison {
  std::string table;              ///< rows with predicted and planned bytes of the role that needs the most
  std::vector<std::string> notes; ///< sentences about choices that save little or nothing
};

/// Compares a training plan with the formulas for \p inputs, dividing layers among ranks as the plan does. \p links are
/// those of the compilation. Writes the plan with WritePlan, which fills in its hashes and versions. Returns the errors
/// of WritePlan and costModelOf.
absl::StatusOr<MemoryComparison> compareWithFormulas(fbs::PlanT &plan, MemoryInputs inputs,
                                                     const std::vector<std::string> &links);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYCOMPARISON_H
