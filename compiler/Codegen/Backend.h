//===- Backend.h - Code generator of a target, beside the target's description
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_BACKEND_H
#define BOWLINE_COMPILER_CODEGEN_BACKEND_H

#include "absl/status/statusor.h"
#include "compiler/Codegen/KernelCache.h"
#include "compiler/Codegen/KernelCodegen.h"
#include "targets/target.h"

#include <memory>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace bowline {

struct CodegenOptions {
  /// The target's level, as Backend::resolveLevel returned it.
  std::string level;
  /// If set, receives the IR of every kernel after each stage.
  llvm::raw_ostream *dump = nullptr;
  /// If set, provides kernels that it has, and stores new ones.
  std::shared_ptr<KernelCache> cache;
  /// If false, kernels are planned, but no machine code is generated.
  bool hasCode = true;
};

/// Generates code for one target. Registered under the name of its folder in targets/CMakeLists.txt.
class Backend {
public:
  virtual ~Backend() = default;

  /// Returns the level that \p asked, such as "native", stands for, or an error that names the flag if there is none.
  /// By default, \p asked must be one of the target's levels, and is returned.
  virtual absl::StatusOr<std::string> resolveLevel(const targets::Target &target, llvm::StringRef asked) const;

  virtual std::unique_ptr<KernelCodegen> createCodegen(CodegenOptions options) const = 0;
};

const Backend &backendOf(const targets::Target &target);

/// Returns options for the target's initial level. If that cannot be resolved, it stays as it is, and code generation
/// reports the error.
CodegenOptions defaultCodegen(const targets::Target &target);

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_BACKEND_H
