//===- CpuBackend.cpp - Code for processors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Backend.h"
#include "compiler/Codegen/Cpu/CpuCodegen.h"
#include "compiler/Codegen/TargetCpu.h"
#include "runtime/base/status.h"

using namespace llvm;
using namespace bowline;

namespace {

class CpuBackend : public Backend {
public:
  absl::StatusOr<std::string> resolveLevel(const targets::Target &, StringRef asked) const override {
    BOWLINE_ASSIGN_OR_RETURN(codegen::TargetCpu cpu, codegen::targetCpu(asked));
    return cpu.name;
  }

  std::unique_ptr<KernelCodegen> createCodegen(CodegenOptions options) const override {
    CpuTarget target;
    target.cpu = std::move(options.level);
    target.dump = options.dump;
    target.cache = std::move(options.cache);
    target.hasCode = options.hasCode;
    return std::make_unique<CpuCodegen>(std::move(target));
  }
};

} // namespace

namespace bowline::backends {
std::unique_ptr<Backend> cpu() { return std::make_unique<CpuBackend>(); }
} // namespace bowline::backends
