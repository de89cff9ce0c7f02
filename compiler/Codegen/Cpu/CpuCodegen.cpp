//===- CpuCodegen.cpp - Machine code for regions of graph operations
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Cpu/CpuCodegen.h"
#include "compiler/Codegen/Cpu/Epilogue.h"
#include "compiler/Codegen/Cpu/NestEmitter.h"
#include "compiler/Codegen/Cpu/ObjectFile.h"
#include "compiler/Codegen/Decompose.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Codegen/TargetCpu.h"
#include "compiler/Support/Fault.h"
#include "dialects/Graph/GraphDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "runtime/plan/view/plan_view.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

struct CpuCodegen::State {
  CpuTarget target;
  absl::StatusOr<TargetCpu> cpu;
  llvm::LLVMContext llvmContext;
  /// The target machine, made for the first kernel that is compiled.
  std::unique_ptr<llvm::TargetMachine> machine;
  /// The object code of the kernels, in the order in which they were added.
  std::vector<KernelObject> objects;
  llvm::StringSet<> names;
  MLIRContext *context = nullptr;

  void dump(StringRef stage, Operation *op) {
    if (target.dump)
      *target.dump << "// " << stage << "\n" << *op << "\n";
  }

  void load(MLIRContext *context);
  /// Compiles `kernel`, which is changed. Diagnostics name `original`.
  FailureOr<CachedKernel> compile(func::FuncOp original, func::FuncOp kernel);
  FailureOr<CachedKernel> compileEpilogue(func::FuncOp original, func::FuncOp epilogue);
  FailureOr<std::string> emit(ModuleOp module);
};

CpuCodegen::CpuCodegen(CpuTarget target) : state(std::make_unique<State>()) {
  state->cpu = targetCpu(target.cpu);
  state->target = std::move(target);
}

CpuCodegen::~CpuCodegen() = default;

StringRef CpuCodegen::imageFormat() const { return state->target.hasCode ? kElfImageFormat : kNoImageFormat; }

StringRef CpuCodegen::cpu() const { return state->cpu.ok() ? StringRef(state->cpu->name) : StringRef(); }

void CpuCodegen::State::load(MLIRContext *loaded) {
  if (context == loaded)
    return;
  context = loaded;
  DialectRegistry registry;
  registerCodegenDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, graph::GraphDialect,
                       LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
}

FailureOr<std::string> CpuCodegen::State::emit(ModuleOp module) {
  if (failed(verify(module)) || failed(lowerToLLVM(module)))
    return failure();
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(module, llvmContext, "kernels");
  if (!llvmModule)
    return failure();
  if (!machine) {
    auto created = createTargetMachine(*cpu);
    if (!created)
      return module.emitError(llvm::toString(created.takeError()));
    machine = std::move(*created);
  }
  prepareModule(*llvmModule, *machine, *cpu);
  optimize(*llvmModule, *machine);
  if (target.dump)
    *target.dump << "; optimised\n" << *llvmModule << "\n";
  auto object = emitObject(*llvmModule, *machine);
  if (!object)
    return module.emitError(llvm::toString(object.takeError()));
  return std::move(*object);
}

/// The attribute that marks the body of an epilogue. It is in the printed IR, and so in the key of the cache.
static constexpr StringLiteral kEpilogue = "epilogue";

FailureOr<CachedKernel> CpuCodegen::State::compile(func::FuncOp original, func::FuncOp kernel) {
  decomposeLayers(kernel.getBody().front());
  dump("decomposed", kernel);
  if (kernel->hasAttr(kEpilogue))
    return compileEpilogue(original, kernel);
  auto nests = planNests(kernel);
  if (failed(nests))
    return failure();
  CachedKernel result;
  for (const std::unique_ptr<Nest> &nest : *nests) {
    divideForCaches(*nest, kernel, cpu->vectorBits / 32);
    result.parallelExtent += nest->units;
  }
  if (failed(verifyNests(*nests, kernel)))
    return failure();
  result.inPlace = findInPlacePairs(kernel, *nests);
  if (!target.hasCode)
    return result;
  chooseStreams(*nests, kernel, result.inPlace, target.streamedBytes);
  OwningOpRef<ModuleOp> module = ModuleOp::create(original.getLoc());
  if (failed(emitKernel(*module, kKernelSymbol, kernel, *nests, *cpu)))
    return failure();
  dump("loops", &module->getBody()->back());
  auto object = emit(*module);
  if (failed(object))
    return failure();
  result.object = std::move(*object);
  return result;
}

FailureOr<CachedKernel> CpuCodegen::State::compileEpilogue(func::FuncOp original, func::FuncOp epilogue) {
  auto nest = planEpilogue(epilogue);
  if (failed(nest))
    return failure();
  CachedKernel result;
  result.parallelExtent = (*nest)->units;
  result.inPlace = findEpiloguePairs(epilogue);
  if (!target.hasCode)
    return result;
  OwningOpRef<ModuleOp> module = ModuleOp::create(original.getLoc());
  if (failed(emitEpilogue(*module, kKernelSymbol, epilogue, **nest, *cpu)))
    return failure();
  dump("loops", &module->getBody()->back());
  auto object = emit(*module);
  if (failed(object))
    return failure();
  result.object = std::move(*object);
  return result;
}

FailureOr<KernelInfo> CpuCodegen::addEpilogue(func::FuncOp epilogue, StringRef symbol) {
  if (failed(checkKernelSignature(epilogue)) || failed(checkEpilogue(epilogue)))
    return failure();
  OwningOpRef<func::FuncOp> marked = epilogue.clone();
  marked->getOperation()->setAttr(kEpilogue, UnitAttr::get(epilogue.getContext()));
  return add(*marked, symbol);
}

FailureOr<KernelInfo> CpuCodegen::add(func::FuncOp kernel, StringRef symbol) {
  if (!state->cpu.ok())
    return kernel.emitOpError() << std::string(state->cpu.status().message());
  if (failed(checkKernelSignature(kernel)))
    return failure();
  if (symbol.empty())
    symbol = kernel.getSymName();
  if (!state->names.insert(symbol).second)
    return kernel.emitOpError("another kernel has this name");
  state->load(kernel.getContext());
  state->dump("kernel", kernel);

  OwningOpRef<func::FuncOp> own = kernel.clone();
  std::optional<CachedKernel> code;
  Sha256Digest key{};
  KernelCache *cache = state->target.hasCode ? state->target.cache.get() : nullptr;
  if (cache) {
    // The code does not depend on the kernel's name or locations: they are kept out of the key.
    own->setSymName(kKernelSymbol);
    std::string ir;
    llvm::raw_string_ostream stream(ir);
    own->print(stream, OpPrintingFlags().enableDebugInfo(false));
    stream << state->target.streamedBytes;
    key = cache->keyOf(ir, state->cpu->name);
    code = cache->find(key);
    own->setSymName(kernel.getSymName());
  }
  if (!code) {
    auto compiled = state->compile(kernel, *own);
    if (failed(compiled))
      return failure();
    code = std::move(*compiled);
    if (cache)
      cache->store(key, *code);
  }
  if (state->target.hasCode)
    state->objects.push_back({symbol.str(), std::move(code->object)});
  return KernelInfo{symbol.str(), code->parallelExtent, std::nullopt, code->inPlace};
}

FailureOr<std::vector<char>> CpuCodegen::finish() {
  if (state->objects.empty())
    return std::vector<char>();
  auto image = linkObjects(state->objects);
  if (!image)
    return emitFault(UnknownLoc::get(state->context), llvm::toString(image.takeError()));
  return std::move(*image);
}
