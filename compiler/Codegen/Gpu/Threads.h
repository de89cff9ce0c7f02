//===- Gpu/Threads.h - This thread, and its cooperation with others of its block
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GPU_THREADS_H
#define BOWLINE_COMPILER_CODEGEN_GPU_THREADS_H

#include "compiler/Codegen/Gpu/GridPlan.h"
#include "compiler/Codegen/Loops/Scopes.h"

namespace bowline::codegen {

/// The thread that executes the emitted code: its indices, and how it exchanges values with other threads.
class Threads {
public:
  Threads(KernelBuilder &b, Scopes &scopes) : b(b), scopes(scopes) {}

  /// Begins a function: emits reads of the thread's indices. `nameOfShared` is the symbol for the memory that warps
  /// share, which `defineShared` adds to the module.
  void begin(int64_t threadsOfBlock, std::string nameOfShared);

  /// Calls an intrinsic and returns its result; null if `type` is null.
  Value intrinsic(StringRef name, Type type, ValueRange operands = {});

  /// Returns the `value` of the lane whose number is this lane's XOR `distance`.
  Value shuffle(Value value, int64_t distance);

  /// Emits a barrier for all threads of the block.
  void barrier();
  /// Emits a barrier for the threads that share a row.
  void emitRowBarrier();

  /// Returns the address in shared memory of value `slot` of a warp.
  Value sharedAddress(int64_t slot, Value warp);
  /// Defines the shared memory at the start of `module`, if `sharedAddress` has been called.
  void defineShared(ModuleOp module);

  /// i32: index of the thread in its block, and of the block. i64: lane, warp, and index of the thread in the block.
  Value thread, block, lane, warp, number;
  /// The number of threads per block.
  int64_t count = 32;
  /// True if the threads of a block share a row; false if those of a warp do.
  bool rowOfBlock = false;

private:
  KernelBuilder &b;
  Scopes &scopes;
  /// The number of values that each warp has in shared memory.
  int64_t sharedSlots = 0;
  std::string sharedName;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_THREADS_H
