//===- ArenaBytes.cpp - The memory of a plan with other options
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Compile.h"
#include "compiler/Driver/CompileSetup.h"

using namespace bowline;

std::optional<uint64_t> bowline::arenaBytesWith(CompileOptions options) {
  options.codegen = options.listsKernels = options.timing = options.verifiesPlacement = false;
  options.passRemarks.reset();
  options.irPrinting = IrPrinting::None;
  const absl::StatusOr<CompileResult> compiled = compileModel(options);
  if (!compiled.ok() || !compiled->plan)
    return std::nullopt;
  return compiled->plan->arena_bytes;
}
