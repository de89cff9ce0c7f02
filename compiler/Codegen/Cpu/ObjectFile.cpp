//===- ObjectFile.cpp - LLVM IR as machine code
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Cpu/ObjectFile.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace llvm;
using namespace bowline;
using codegen::TargetCpu;

static constexpr StringLiteral kTriple = "x86_64-unknown-linux-gnu";

Expected<std::unique_ptr<TargetMachine>> codegen::createTargetMachine(const TargetCpu &cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
  Triple triple(kTriple);
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("this LLVM cannot generate x86-64 code: " + error);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard;
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, cpu.level, cpu.features(), options, Reloc::PIC_, CodeModel::Small));
}

void codegen::prepareModule(Module &module, TargetMachine &machine, const TargetCpu &cpu) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", cpu.level);
    if (!cpu.features().empty())
      function.addFnAttr("target-features", cpu.features());
    // Where vectors have 512 bits, LLVM prefers 256 by default, since wide ones may lower the clock of scalar code
    // around them. Kernels are vector code throughout.
    function.addFnAttr("prefer-vector-width", std::to_string(cpu.vectorBits));
    function.addFnAttr(Attribute::NoUnwind);
  }
}

void codegen::optimize(Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager callGraph;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  ModulePassManager passes;
  // Kernels have no calls to inline and are vectorised already, so that cleaning up their loops is enough.
  cantFail(builder.parsePassPipeline(
      passes, "function(early-cse<memssa>,instcombine,simplifycfg,loop-mssa(licm<allowspeculation>),"
              "early-cse<memssa>,instcombine,simplifycfg)"));
  passes.run(module, modules);
}

Expected<std::string> codegen::emitObject(Module &module, TargetMachine &machine) {
  SmallVector<char, 0> object;
  raw_svector_ostream os(object);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("this LLVM cannot write x86-64 object files");
  passes.run(module);
  return std::string(object.begin(), object.end());
}
