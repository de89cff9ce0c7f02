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

/// The tables of a plan whose rows several roles may name: each row is stored once. All indices are those of the file.
class PlanTables {
public:
  /// \p plan outlives the tables. Its first source stands for everything without provenance.
  explicit PlanTables(fbs::PlanT &plan);

  /// The axes of all ranks. Called at most once.
  void addMesh(dist::MeshOp mesh);
  /// None where the mesh has no such axis.
  std::optional<uint8_t> findAxis(mlir::StringAttr name) const;
  /// Fails with a diagnostic at \p op where the mesh lacks one of \p names.
  llvm::LogicalResult findAxes(mlir::Operation *op, mlir::ArrayAttr names, std::vector<uint8_t> &axes) const;

  /// A communicator is that of all who name it.
  llvm::LogicalResult addCommunicator(plan::CommunicatorOp op);
  uint32_t communicator(mlir::StringAttr name) const { return communicators.lookup(name); }

  /// Where a command or buffer comes from, and which pass made it, for which reason.
  uint32_t source(const std::string &location, llvm::StringRef pass, llvm::StringRef reason = "");
  uint32_t source(mlir::Operation *op, llvm::StringRef pass);

  /// A new row, or that of an equal kernel of an earlier role, whose kernels are those before \p firstOfRole.
  uint32_t addKernel(std::unique_ptr<fbs::KernelT> kernel, uint32_t firstOfRole);
  /// A new row, or that of equal code: stages of equal layers have it.
  uint32_t addImage(std::unique_ptr<fbs::ImageT> image);

private:
  fbs::PlanT &plan;
  llvm::DenseMap<mlir::StringAttr, uint8_t> axes;
  llvm::DenseMap<mlir::StringAttr, uint32_t> communicators;
  std::map<std::array<std::string, 3>, uint32_t> sources; ///< by location, pass and reason
  std::map<std::string, uint32_t> kernels;                ///< packed, the first of equal ones
};

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_PLANTABLES_H
