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
  /// The level of the target, as Backend::resolveLevel returned it.
  std::string level;
  /// Where set, the IR of every kernel is printed to it after each stage.
  llvm::raw_ostream *dump = nullptr;
  /// Where set, kernels that are in it are not compiled again.
  std::shared_ptr<KernelCache> cache;
  /// When false, kernels are planned, but no machine code is generated for them.
  bool hasCode = true;
};

/// Code for one target. Each target has one, which is registered under the folder's name in targets/CMakeLists.txt.
class Backend {
public:
  virtual ~Backend() = default;

  /// The level of the target that \p asked stands for, such as "native"; an error that names the flag if there is none.
  /// \p asked by default: one of the target's names.
  virtual absl::StatusOr<std::string> resolveLevel(const targets::Target &target, llvm::StringRef asked) const;

  virtual std::unique_ptr<KernelCodegen> createCodegen(CodegenOptions options) const = 0;
};

const Backend &backendOf(const targets::Target &target);

/// The options for code of the target at its initial level, unresolved where there is none: then code generation says
/// why.
CodegenOptions defaultCodegen(const targets::Target &target);

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_BACKEND_H
