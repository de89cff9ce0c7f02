//===- EmulatedBackend.cpp - Plans for cards that run on the stand-in for NVIDIA's driver
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linked into a bowline-compile, this takes the place of the backend for cuda: everything in a plan is as for a card
// but for the generated kernels, which are compiled for this processor.
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Backend.h"
#include "test/Unit/Codegen/EmulatedCode.h"

using namespace bowline;

namespace {

class EmulatedBackend : public Backend {
public:
  std::unique_ptr<KernelCodegen> createCodegen(CodegenOptions options) const override {
    return test::createEmulatedCodegen(options.hasCode, std::move(options.cache));
  }
};

} // namespace

namespace bowline::backends {
std::unique_ptr<Backend> cuda() { return std::make_unique<EmulatedBackend>(); }
} // namespace bowline::backends
