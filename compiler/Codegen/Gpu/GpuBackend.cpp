//===- Gpu/GpuBackend.cpp - Code for NVIDIA GPUs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Backend.h"
#include "compiler/Codegen/Gpu/GpuCodegen.h"

using namespace bowline;

namespace {

class GpuBackend : public Backend {
public:
  std::unique_ptr<KernelCodegen> createCodegen(CodegenOptions options) const override {
    return std::make_unique<GpuCodegen>(GpuTarget{std::move(options.level), options.dump, options.hasCode});
  }
};

} // namespace

namespace bowline::backends {
std::unique_ptr<Backend> cuda() { return std::make_unique<GpuBackend>(); }
} // namespace bowline::backends
