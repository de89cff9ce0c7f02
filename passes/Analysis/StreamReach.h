//===- StreamReach.h - How long other streams may run beside the last use of a buffer
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_STREAMREACH_H
#define BOWLINE_PASSES_ANALYSIS_STREAMREACH_H

#include "passes/Analysis/StreamClocks.h"
#include "llvm/ADT/DenseMap.h"

namespace bowline {

/// Finds, for each buffer that shares memory in a program with several streams, the last issued command that may start
/// before all uses of the buffer have ended. Only commands issued after that one may reuse the buffer's memory.
class StreamReach {
public:
  /// The reach of one buffer, over all calls.
  struct Reach {
    int64_t last = 0; ///< position of that last command
    /// The first call with a command that may end behind the start of the first use, and the call of the last command
    /// that may start before all uses have ended.
    int64_t firstCall = 0, lastCall = 0;
    bool leavesCall = false; ///< whether it is in a later call than the buffer's uses, which are all in one call
    bool endsInOrder = true; ///< whether all other uses are over when the last use begins
  };

  /// The position of a command is its index in `commands`. `shares` is true for the buffers that share memory;
  /// `staysInCall`, for those of them whose values stay in one call.
  StreamReach(plan::ProgramOp program, mlir::SymbolTable &symbols, llvm::ArrayRef<mlir::Operation *> commands,
              llvm::function_ref<bool(mlir::Value)> shares, llvm::function_ref<bool(mlir::Value)> staysInCall);

  Reach of(mlir::Value buffer) const { return reaches.lookup(buffer); }

private:
  /// A command that uses a buffer that shares memory.
  struct Point {
    int64_t issue, call, position;
    std::vector<uint32_t> clock; // when it begins
  };
  /// The uses of a buffer: those in one call of a segment if no value outlives a call, else those in all calls.
  struct Uses {
    mlir::Value buffer;
    int64_t call, firstCall, lastCall, firstIssue, lastIssue, lastPosition;
    std::vector<uint32_t> places; // the place of the last use in each stream
    bool endsInOrder;
  };

  void addUse(mlir::Value buffer, bool staysInCall, const Point &point, int64_t stream);
  void finish(const Uses &uses, bool staysInCall);

  std::vector<std::vector<Point>> points;          // by stream
  std::vector<std::vector<int64_t>> callsOfStream; // of all its commands, in order
  std::vector<Uses> all;
  llvm::DenseMap<mlir::Value, size_t> current; // the last of `all`
  llvm::DenseMap<mlir::Value, Reach> reaches;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_STREAMREACH_H
