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

/// The thread that runs the code: its numbers, and how it exchanges values with others.
class Threads {
public:
  Threads(KernelBuilder &b, Scopes &scopes) : b(b), scopes(scopes) {}

  /// Begins a function: reads the numbers of its thread. `nameOfShared` is the symbol of the memory that warps share,
  /// which `defineShared` adds to the module.
  void begin(int64_t threadsOfBlock, std::string nameOfShared);

  /// Calls an intrinsic and returns its result, null where `type` is null.
  Value intrinsic(StringRef name, Type type, ValueRange operands = {});

  /// Returns `value` of the lane whose number is this lane's XOR `distance`.
  Value shuffle(Value value, int64_t distance);

  /// Adds a barrier for the threads of a block.
  void barrier();
  /// Adds a barrier for the threads that share a row.
  void emitRowBarrier();

  /// The address in shared memory of value `slot` of a warp.
  Value sharedAddress(int64_t slot, Value warp);
  /// Defines the shared memory at the start of `module`, if `sharedAddress` was called.
  void defineShared(ModuleOp module);

  /// The numbers of this thread in its block and of the block as i32; of its lane, its warp and the thread as i64.
  Value thread, block, lane, warp, number;
  /// The number of threads in a block.
  int64_t count = 32;
  /// Whether the threads of a block share a row; otherwise those of a warp do.
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
