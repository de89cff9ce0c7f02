//===- ObjectFile.h - LLVM IR as machine code
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_CPU_OBJECTFILE_H
#define BOWLINE_COMPILER_CODEGEN_CPU_OBJECTFILE_H

#include "compiler/Codegen/TargetCpu.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <vector>

namespace bowline::codegen {

/// Position-independent code for `cpu`.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const TargetCpu &cpu);

/// Optimises `module`, whose loops are vectors already. `prepareModule` must have been called on it.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// Sets triple, data layout and the attributes of functions.
void prepareModule(llvm::Module &module, llvm::TargetMachine &machine, const TargetCpu &cpu);

/// The name of the one function in a kernel's object file, which does not depend on the kernel's name.
inline constexpr llvm::StringLiteral kKernelSymbol = "kernel";

/// The code of `module` as an ELF object file.
llvm::Expected<std::string> emitObject(llvm::Module &module, llvm::TargetMachine &machine);

struct KernelObject {
  std::string symbol;
  /// Defines kKernelSymbol, which becomes `symbol`.
  std::string object;
};

/// One shared object. Errors are faults of the machine, not of the linked objects. Writes no file.
llvm::Expected<std::vector<char>> linkObjects(llvm::ArrayRef<KernelObject> objects);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_CPU_OBJECTFILE_H
