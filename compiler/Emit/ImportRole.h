//===- ImportRole.h - From the part of a plan that a role has to its module
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_IMPORTROLE_H
#define BOWLINE_COMPILER_EMIT_IMPORTROLE_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/Builders.h"
#include "runtime/plan/plan_generated.h"

#include <string>
#include <vector>

namespace bowline {

/// State that the importers of a role's parts share. They insert operations at the insertion point of \p builder.
struct RoleScope {
  RoleScope(const fbs::PlanT &plan, mlir::OpBuilder &builder, uint32_t role);

  mlir::Location locationOf(uint32_t source) const;
  mlir::RankedTensorType tensorType(fbs::DType dtype, const std::vector<int64_t> &shape) const;
  mlir::ArrayAttr axisNames(const std::vector<uint8_t> &axes) const;
  /// Whether the kernel checks data before a launch: the dialect does not show commands that launch it.
  bool isCheck(uint32_t kernel) const;

  const fbs::PlanT &plan;
  mlir::OpBuilder &builder;
  const uint32_t role;
  // By index in the plan, where they are of the role.
  /// The buffer of that index. Fails with a diagnostic at \p loc where the dialect has none: it leaves out second
  /// buffers of ports and buffers of faults, which come back when the plan is written, so that nothing else may name
  /// them.
  llvm::FailureOr<mlir::Value> findBuffer(mlir::Location loc, uint32_t index) const;

  std::vector<mlir::Value> buffers;
  std::vector<plan::CommunicatorOp> communicators;
  std::vector<std::string> kernelSymbols;
};

/// Fills \p module with the parts of the role, \p arenaBytes in space Device among them. Fails with a diagnostic where
/// the dialect cannot express the plan, as the two below.
llvm::LogicalResult importRole(const fbs::PlanT &plan, mlir::OpBuilder &builder, uint32_t role, mlir::ModuleOp module,
                               uint64_t arenaBytes);

/// The kernels that the role launches, and the image with their code.
llvm::LogicalResult importKernels(RoleScope &scope);

/// A program of the role, whose buffers, kernels and communicators are there.
llvm::LogicalResult importProgram(RoleScope &scope, const fbs::ProgramT &program);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_IMPORTROLE_H
