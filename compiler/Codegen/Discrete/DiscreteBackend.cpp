//===- Discrete/DiscreteBackend.cpp - Code for processors, launched by grid
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Backend.h"

using namespace mlir;
using namespace bowline;

namespace {

/// More blocks than threads of the host, so that those that are done with theirs take another one's.
constexpr int64_t kBlocks = 64;

/// A block does a part of the indices of code for CPUs, whose number is the launch's constant.
class DiscreteCodegen : public KernelCodegen {
public:
  explicit DiscreteCodegen(std::unique_ptr<KernelCodegen> forCpu) : forCpu(std::move(forCpu)) {}

  FailureOr<KernelInfo> add(func::FuncOp kernel, StringRef symbol) override {
    FailureOr<KernelInfo> info = forCpu->add(kernel, symbol);
    if (succeeded(info))
      info->grid = KernelGrid{std::min(info->parallelExtent, kBlocks), 1, {info->parallelExtent}};
    return info;
  }

  FailureOr<KernelInfo> addEpilogue(func::FuncOp epilogue, StringRef symbol) override {
    return forCpu->addEpilogue(epilogue, symbol);
  }

  FailureOr<std::vector<char>> finish() override { return forCpu->finish(); }
  StringRef imageFormat() const override { return forCpu->imageFormat(); }

private:
  std::unique_ptr<KernelCodegen> forCpu;
};

class DiscreteBackend : public Backend {
public:
  absl::StatusOr<std::string> resolveLevel(const targets::Target &, StringRef asked) const override {
    return forCpu().resolveLevel(targets::DefaultTarget(), asked);
  }

  std::unique_ptr<KernelCodegen> createCodegen(CodegenOptions options) const override {
    return std::make_unique<DiscreteCodegen>(forCpu().createCodegen(std::move(options)));
  }

private:
  static const Backend &forCpu() { return backendOf(targets::DefaultTarget()); }
};

} // namespace

namespace bowline::backends {
std::unique_ptr<Backend> discrete() { return std::make_unique<DiscreteBackend>(); }
} // namespace bowline::backends
