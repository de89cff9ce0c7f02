//===- ObjectFile.h - LLVM IR as a shared object
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_OBJECTFILE_H
#define BOWLINE_COMPILER_CODEGEN_OBJECTFILE_H

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <vector>

namespace bowline::codegen {

/// "native" as the highest of x86-64-v2, v3 and v4 that this machine runs; other known names as they are; empty
/// otherwise.
std::string resolveCpu(llvm::StringRef cpu);

/// Width of the vector registers of a resolved cpu.
int vectorBits(llvm::StringRef cpu);

/// Position-independent code for `cpu`.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(llvm::StringRef cpu);

/// Optimises `module`, whose loops are vectors already. `prepareModule` must have been called on it.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// Sets triple, data layout and the attributes of functions.
void prepareModule(llvm::Module &module, llvm::TargetMachine &machine);

/// Compiles and links. Temporary files are gone afterwards.
llvm::Expected<std::vector<char>> emitSharedObject(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_OBJECTFILE_H
