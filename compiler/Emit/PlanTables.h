//===- PlanTables.h - Tables that the roles of a plan share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_PLANTABLES_H
#define BOWLINE_COMPILER_EMIT_PLANTABLES_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "runtime/plan/plan_generated.h"
#include "llvm/ADT/DenseMap.h"

#include <array>
#include <map>
#include <string>

namespace bowline {

/// The tables of a plan that all roles share, without equal rows. All indices are indices into the plan's tables.
class PlanTables {
public:
  /// \p plan must outlive the tables. The first source stands for all objects without provenance.
  explicit PlanTables(fbs::PlanT &plan);

  /// Adds the mesh axes. Call at most once.
  void addMesh(dist::MeshOp mesh);
  /// Returns nothing if the mesh has no axis of this name.
  std::optional<uint8_t> findAxis(mlir::StringAttr name) const;
  /// Fails with a diagnostic at \p op where the mesh lacks one of \p names.
  llvm::LogicalResult findAxes(mlir::Operation *op, mlir::ArrayAttr names, std::vector<uint8_t> &axes) const;

  /// Adds a communicator. Operations that use the same name, in any role, share it.
  llvm::LogicalResult addCommunicator(plan::CommunicatorOp op);
  uint32_t communicator(mlir::StringAttr name) const { return communicators.lookup(name); }

  /// Returns the index of a source: the origin of a command or buffer, the pass that created it, and its reason.
  uint32_t source(const std::string &location, llvm::StringRef pass, llvm::StringRef reason = "");
  uint32_t source(mlir::Operation *op, llvm::StringRef pass);

  /// Returns the index of an equal kernel of an earlier role (all below \p firstOfRole), or else adds a row.
  uint32_t addKernel(std::unique_ptr<fbs::KernelT> kernel, uint32_t firstOfRole);
  /// Returns the index of equal code, which stages with equal layers have, or else adds a row.
  uint32_t addImage(std::unique_ptr<fbs::ImageT> image);

private:
  fbs::PlanT &plan;
  llvm::DenseMap<mlir::StringAttr, uint8_t> axes;
  llvm::DenseMap<mlir::StringAttr, uint32_t> communicators;
  std::map<std::array<std::string, 3>, uint32_t> sources; ///< by location, pass and reason
  std::map<std::string, uint32_t> kernels;                ///< by serialized kernel: the first of equal ones
};

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_PLANTABLES_H
