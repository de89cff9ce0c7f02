//===- CpuCodegen.cpp - Machine code for regions of graph operations
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/CpuCodegen.h"
#include "compiler/Codegen/Decompose.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Codegen/NestEmitter.h"
#include "compiler/Codegen/ObjectFile.h"
#include "dialects/Graph/GraphDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

struct CpuCodegen::State {
  CpuTarget target;
  std::string cpu;
  /// The kernels as loops; null before the first one.
  OwningOpRef<ModuleOp> module;

  void dump(StringRef stage, Operation *op) {
    if (target.dump)
      *target.dump << "// " << stage << "\n" << *op << "\n";
  }
};

CpuCodegen::CpuCodegen(CpuTarget target) : state(std::make_unique<State>()) {
  state->cpu = resolveCpu(target.cpu);
  state->target = std::move(target);
}

CpuCodegen::~CpuCodegen() = default;

StringRef CpuCodegen::cpu() const { return state->cpu; }

void CpuCodegen::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, graph::GraphDialect,
                  LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

static LogicalResult checkSignature(func::FuncOp kernel) {
  if (kernel.isExternal() || !kernel.getBody().hasOneBlock())
    return kernel.emitOpError("a kernel must have a body of one block");
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || tensor.getNumElements() == 0)
      return kernel.emitOpError("arguments and results of a kernel must be tensors of static shape, got ") << type;
    Type element = tensor.getElementType();
    if (!(element.isF32() || element.isF64() || element.isBF16() || element.isF16() || element.isInteger(1) ||
          element.isInteger(8) || element.isInteger(32) || element.isInteger(64)))
      return kernel.emitOpError("no code generation for elements of type ") << element;
  }
  return success();
}

FailureOr<KernelInfo> CpuCodegen::add(func::FuncOp kernel) {
  if (state->cpu.empty())
    return kernel.emitOpError("unknown target '")
           << state->target.cpu << "'; use x86-64-v2, x86-64-v3, x86-64-v4 or native";
  if (failed(checkSignature(kernel)))
    return failure();
  MLIRContext *context = kernel.getContext();
  if (!state->module) {
    DialectRegistry registry;
    registerDialects(registry);
    context->appendDialectRegistry(registry);
    context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, graph::GraphDialect,
                         LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
    state->module = ModuleOp::create(UnknownLoc::get(context));
  }
  if (state->module->lookupSymbol(kernel.getSymName()))
    return kernel.emitOpError("another kernel has this name");

  state->dump("kernel", kernel);
  OwningOpRef<func::FuncOp> own = kernel.clone();
  decomposeLayers(own->getBody().front());
  state->dump("decomposed", *own);
  int64_t vectorLanes = vectorBits(state->cpu) / 32;
  auto nests = planNests(*own, vectorLanes);
  if (failed(nests) || failed(emitKernel(*state->module, kernel.getSymName(), *own, *nests, vectorLanes)))
    return failure();
  state->dump("loops", &state->module->getBody()->back());

  KernelInfo info;
  info.symbol = kernel.getSymName();
  for (const std::unique_ptr<Nest> &nest : *nests)
    info.parallelExtent += nest->units;
  info.inPlace = findInPlacePairs(*own, *nests);
  return info;
}

FailureOr<std::vector<char>> CpuCodegen::finish() {
  if (!state->module)
    return std::vector<char>();
  ModuleOp module = *state->module;
  if (failed(verify(module)) || failed(lowerToLLVM(module)))
    return failure();
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, llvmContext, "kernels");
  if (!llvmModule)
    return failure();
  auto machine = createTargetMachine(state->cpu);
  if (!machine)
    return module.emitError(llvm::toString(machine.takeError()));
  prepareModule(*llvmModule, **machine);
  optimize(*llvmModule, **machine);
  if (state->target.dump)
    *state->target.dump << "; optimised\n" << *llvmModule << "\n";
  auto image = emitSharedObject(*llvmModule, **machine);
  if (!image)
    return module.emitError(llvm::toString(image.takeError()));
  return std::move(*image);
}
