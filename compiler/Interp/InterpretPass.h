//===- InterpretPass.h - Interpretation as the last step of a tool ----------===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_INTERPRETPASS_H
#define BOWLINE_COMPILER_INTERP_INTERPRETPASS_H

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm
namespace mlir {
class Pass;
} // namespace mlir

namespace bowline {

struct InterpretOptions {
  /// The `graph.func` or `graph.entry` to run.
  std::string callee;
  /// One .npy file per argument, or the single text `random:SEED`: normal values, or integers below `graph.limit`.
  std::vector<std::string> inputs;
  /// The folder for one NAME.npy per result, with elements of f64 or the result's integer type; empty: none.
  std::string outputs;
  /// The seed for the initial values of variables.
  int64_t seed = 0;
};

/// Initialises the module's variables, runs the callee, and prints the type, the first values and the sum of each
/// result to `os`. Does not change the module.
std::unique_ptr<mlir::Pass> createInterpretPass(InterpretOptions options, llvm::raw_ostream &os);

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_INTERPRETPASS_H
