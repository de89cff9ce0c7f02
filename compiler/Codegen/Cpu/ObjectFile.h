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

/// Creates a machine that generates position-independent code for `cpu`.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const TargetCpu &cpu);

/// Optimises `module`, whose loops already use vectors. Call `prepareModule` first.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// Sets the triple, the data layout and the attributes of functions.
void prepareModule(llvm::Module &module, llvm::TargetMachine &machine, const TargetCpu &cpu);

/// The name of the only function in a kernel's object file, the same for all kernels.
inline constexpr llvm::StringLiteral kKernelSymbol = "kernel";

/// The code of `module` as an ELF object file.
llvm::Expected<std::string> emitObject(llvm::Module &module, llvm::TargetMachine &machine);

struct KernelObject {
  std::string symbol;
  /// Defines kKernelSymbol, which linkObjects renames to `symbol`.
  std::string object;
};

/// Links one shared object without writing files. Errors are faults of the machine, not of the objects.
llvm::Expected<std::vector<char>> linkObjects(llvm::ArrayRef<KernelObject> objects);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_CPU_OBJECTFILE_H
