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

/// State that the ranks of one role share: the role's module, and the places of its buffers.
struct PlanRole {
  /// `coordinate` along `axis` of the grid `whole` is where the role's ranks are; all ranks have it if `axis` is empty.
  PlanRole(mlir::ModuleOp module, const RankGrid &whole, llvm::StringRef axis, int64_t coordinate);

  /// The buffer of the state with this name; null where there is none.
  plan::BufferOp findState(llvm::StringRef name);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  RankGrid grid;              ///< the grid of these ranks
  std::vector<int64_t> ranks; ///< their numbers in the whole grid
  /// The first byte of each buffer. The arenas of memory spaces lie one behind the other; behind them are buffers that
  /// have no place yet.
  llvm::DenseMap<mlir::Value, int64_t> offsets;
  int64_t bytes = 0;
};

/// The memory of one rank: the value and the size in bytes of the element that begins at each byte.
class PlanMemory {
public:
  using HostTensor = graph::HostTensor;

  explicit PlanMemory(const PlanRole &role)
      : role(&role), values(allocate<double>(role.bytes)), sizes(allocate<uint8_t>(role.bytes)) {}

  /// Writes `tensor` to the slot that microbatch `slot` has of a buffer; elements that it writes over are gone.
  void write(mlir::Value buffer, int64_t slot, const HostTensor &tensor);
  /// Fails with a diagnostic of `user` where an element of the buffer's type does not begin where it should.
  llvm::FailureOr<HostTensor> read(mlir::Operation *user, mlir::Value buffer, int64_t slot) const;
  /// Leaves no element in any slot of the buffer.
  void forget(plan::BufferOp buffer);

private:
  template <typename T> using Zeros = std::unique_ptr<T[], llvm::FreeDeleter>;

  /// The system gives pages when they are written: most of an arena may be scratch memory of a library, which nothing
  /// is written to here.
  template <typename T> static Zeros<T> allocate(int64_t count) {
    return Zeros<T>(static_cast<T *>(llvm::safe_calloc(count, sizeof(T))));
  }
  int64_t addressOf(plan::BufferOp buffer, int64_t slot) const;

  const PlanRole *role;
  Zeros<double> values;
  Zeros<uint8_t> sizes; ///< 0 where no element begins
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_PLANMEMORY_H
