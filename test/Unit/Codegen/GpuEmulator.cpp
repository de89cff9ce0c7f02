//===- GpuEmulator.cpp - Generated kernels for GPUs, run on this processor
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Codegen/GpuEmulator.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/Support/gpu_blocks/gpu_blocks.h"
#include "test/Unit/Codegen/EmulatedCode.h"

using namespace bowline;
using namespace bowline::test;

EmulatedKernel::EmulatedKernel(mlir::func::FuncOp kernel) {
  auto code = emulateKernel(kernel, "emulated");
  if (!code) {
    ADD_FAILURE() << llvm::toString(code.takeError());
    return;
  }
  kernelInfo = code->info;
  hasBarriers = code->hasBarriers;
  auto image = codegen::linkObjects({code->object});
  if (!image) {
    ADD_FAILURE() << llvm::toString(image.takeError());
    return;
  }
  // The loader takes two libraries of one name for the same, so this one keeps its number until it is gone.
  file = memfd_create("emulated", MFD_CLOEXEC);
  if (write(file, image->data(), image->size()) != static_cast<ssize_t>(image->size()))
    ADD_FAILURE() << "cannot fill the image";
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    ADD_FAILURE() << dlerror();
}

EmulatedKernel::~EmulatedKernel() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

void EmulatedKernel::run(const std::vector<void *> &arguments, uint64_t seed) const {
  testing::EmulatedGrid grid;
  grid.entry = reinterpret_cast<decltype(grid.entry)>(dlsym(handle, "emulated"));
  grid.blocks = kernelInfo.grid->blocks;
  grid.threads = kernelInfo.grid->threads;
  grid.has_barriers = hasBarriers;
  std::string wrong = testing::RunBlocks(grid, arguments.data(), seed);
  if (!wrong.empty())
    ADD_FAILURE() << wrong;
}
