//===- StateAlignments.cpp - Say which addresses kernels take, and lay buffers there
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/ModuleTarget.h"
#include "passes/Memory/Passes.h"

namespace bowline {
#define GEN_PASS_DEF_STATEALIGNMENTS
#include "passes/Memory/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class StateAlignments : public bowline::impl::StateAlignmentsBase<StateAlignments> {
public:
  using StateAlignmentsBase::StateAlignmentsBase;

  void runOnProgram() override {
    ModuleOp module = getOperation();
    FailureOr<ModuleTarget> target = ModuleTarget::of(module);
    if (failed(target))
      return signalPassFailure();
    for (auto kernel : module.getOps<plan::KernelOp>()) {
      SmallVector<Attribute> arguments;
      for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
        plan::ArgumentAttr argument = kernel.getArgument(index);
        arguments.push_back(plan::ArgumentAttr::get(&getContext(), argument.getAccess(), argument.getType(),
                                                    target->argumentAlignment(kernel, index)));
      }
      kernel.setArgumentsAttr(ArrayAttr::get(&getContext(), arguments));
    }
    for (auto buffer : module.getOps<plan::BufferOp>())
      if (buffer.getSpace() == plan::MemorySpace::Device)
        raise(buffer, (*target)->alignment);
    SymbolTable symbols(module);
    module.walk([&](plan::LaunchOp launch) {
      auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
      for (auto [index, operand] : llvm::enumerate(launch.getOperands()))
        raise(operand.getDefiningOp<plan::BufferOp>(), kernel.getArgument(index).getAlignment());
    });
  }

private:
  static void raise(plan::BufferOp buffer, int64_t alignment) {
    buffer.setAlignment(std::max<int64_t>(buffer.getAlignment(), alignment));
  }
};

} // namespace
