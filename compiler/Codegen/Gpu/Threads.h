//===- Gpu/Threads.h - This thread, and what it does with others of its block
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

/// The thread that is programmed: its numbers, and how it meets others.
class Threads {
public:
  Threads(KernelBuilder &b, Scopes &scopes) : b(b), scopes(scopes) {}

  /// Where the function begins. The memory that warps share gets a name, and is there after `defineShared`.
  void begin(int64_t threadsOfBlock, std::string nameOfShared);

  /// The result of an intrinsic; null where `type` is.
  Value intrinsic(StringRef name, Type type, ValueRange operands = {});

  /// `value` of the lane whose number differs in `distance`.
  Value shuffle(Value value, int64_t distance);

  void barrier();
  /// Of the threads that share a row.
  void emitRowBarrier();

  /// The place in shared memory for value `slot` of a warp.
  Value sharedAddress(int64_t slot, Value warp);
  /// The memory itself, at the begin of `module`, where something was put there.
  void defineShared(ModuleOp module);

  /// This thread and its block, i32, and its lane, warp and number as i64.
  Value thread, block, lane, warp, number;
  /// Of a block.
  int64_t count = 32;
  /// Whether a row belongs to a block; otherwise to a warp.
  bool rowOfBlock = false;

private:
  KernelBuilder &b;
  Scopes &scopes;
  /// Values of each warp in shared memory at most.
  int64_t sharedSlots = 0;
  std::string sharedName;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_THREADS_H
