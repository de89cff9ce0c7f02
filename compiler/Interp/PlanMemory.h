//===- PlanMemory.h - Memory of interpreted ranks ----------------*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_PLANMEMORY_H
#define BOWLINE_COMPILER_INTERP_PLANMEMORY_H

#include "compiler/Interp/RankGrid.h"
#include "dialects/Plan/PlanOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemAlloc.h"

#include <memory>
#include <vector>

namespace bowline {

/// A role's module, and the offsets of its buffers, which the ranks of the role share.
struct PlanRole {
  /// The ranks of the role are those of `whole` with `coordinate` along `axis`, or all ranks if `axis` is empty.
  PlanRole(mlir::ModuleOp module, const RankGrid &whole, llvm::StringRef axis, int64_t coordinate);

  /// Returns the buffer of the state with this name; null if there is none.
  plan::BufferOp findState(llvm::StringRef name);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  RankGrid grid;              ///< grid of the role's ranks
  std::vector<int64_t> ranks; ///< numbers of these ranks in the whole grid
  /// The first byte of each buffer. The arenas of memory spaces follow one another; buffers
  /// without offsets come after them.
  llvm::DenseMap<mlir::Value, int64_t> offsets;
  int64_t bytes = 0;
};

/// The memory of one rank: for each byte, the value and the size in bytes of the element that begins there.
class PlanMemory {
public:
  using HostTensor = graph::HostTensor;

  explicit PlanMemory(const PlanRole &role)
      : role(&role), values(allocate<double>(role.bytes)), sizes(allocate<uint8_t>(role.bytes)) {}

  /// Writes `tensor` to the slot of a buffer for microbatch `slot`. Destroys all elements that overlap it.
  void write(mlir::Value buffer, int64_t slot, const HostTensor &tensor);
  /// Fails with a diagnostic at `user` where no element of the buffer's type begins although one should.
  llvm::FailureOr<HostTensor> read(mlir::Operation *user, mlir::Value buffer, int64_t slot) const;
  /// Destroys all elements in all slots of the buffer.
  void forget(plan::BufferOp buffer);

private:
  template <typename T> using Zeros = std::unique_ptr<T[], llvm::FreeDeleter>;

  /// Allocates zeros. The system provides pages only when they are written: most of an arena may be workspace of a
  /// library, which is never written here.
  template <typename T> static Zeros<T> allocate(int64_t count) {
    return Zeros<T>(static_cast<T *>(llvm::safe_calloc(count, sizeof(T))));
  }
  int64_t addressOf(plan::BufferOp buffer, int64_t slot) const;

  const PlanRole *role;
  Zeros<double> values;
  Zeros<uint8_t> sizes; ///< size of the element that begins at each byte; 0: none
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_PLANMEMORY_H
