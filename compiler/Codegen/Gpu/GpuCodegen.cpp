//===- Gpu/GpuCodegen.cpp - Code for NVIDIA GPUs for regions of graph operations
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/GpuCodegen.h"
#include "compiler/Codegen/Gpu/CudaToolkit.h"
#include "compiler/Codegen/Gpu/GpuKernelEmitter.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Support/Fault.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "runtime/plan/view/plan_view.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <mutex>

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

static constexpr StringLiteral kDeviceTriple = "nvptx64-nvidia-cuda";

bool bowline::isGpuArch(StringRef name) { return name == "sm_80" || name == "sm_90a" || name == "sm_100"; }

/// The oldest version of PTX that has the architecture.
static StringRef ptxFeature(StringRef arch) {
  return arch == "sm_80" ? "+ptx70" : arch == "sm_90a" ? "+ptx80" : "+ptx86";
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(StringRef arch) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(kDeviceTriple);
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("this LLVM cannot generate PTX: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, arch, ptxFeature(arch), options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

struct GpuCodegen::State {
  GpuTarget target;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::TargetMachine> machine;
  /// The module that all kernels are added to.
  std::unique_ptr<llvm::Module> module;
  llvm::StringSet<> names;
  MLIRContext *context = nullptr;
  std::optional<std::string> toolkit = findCudaToolkit();
  bool isPtx = false;

  void dump(StringRef stage, Operation *op) {
    if (target.dump)
      *target.dump << "// " << stage << "\n" << *op << "\n";
  }
  LogicalResult translate(func::FuncOp kernel, ModuleOp loops, StringRef symbol, KernelGrid grid);
  llvm::Error linkLibrary();
  llvm::Expected<std::vector<char>> finish();
};

GpuCodegen::GpuCodegen(GpuTarget target) : state(std::make_unique<State>()) { state->target = std::move(target); }

GpuCodegen::~GpuCodegen() = default;

StringRef GpuCodegen::imageFormat() const {
  return !state->target.hasCode ? StringRef(kNoImageFormat) : state->isPtx ? "ptx" : "cubin";
}

FailureOr<KernelInfo> GpuCodegen::addEpilogue(func::FuncOp epilogue, StringRef) {
  return epilogue.emitOpError("a GPU has no epilogues of generated code; leave out the step fuse-epilogues");
}

FailureOr<KernelInfo> GpuCodegen::add(func::FuncOp kernel, StringRef symbol) {
  if (!isGpuArch(state->target.arch))
    return kernel.emitOpError("unknown architecture '") << state->target.arch << "'; use " << kGpuArchNames;
  if (failed(checkKernelSignature(kernel)))
    return failure();
  if (symbol.empty())
    symbol = kernel.getSymName();
  // PTX knows no dots in names.
  std::string name = symbol.str();
  std::replace_if(name.begin(), name.end(), [](char c) { return !llvm::isAlnum(c) && c != '_'; }, '_');
  if (!state->names.insert(name).second)
    return kernel.emitOpError("another kernel has this name");
  if (state->context != kernel.getContext()) {
    state->context = kernel.getContext();
    DialectRegistry registry;
    codegen::registerCodegenDialects(registry);
    state->context->appendDialectRegistry(registry);
    state->context->loadAllAvailableDialects();
  }
  state->dump("kernel", kernel);
  auto threads = emitGpuKernel(kernel, name);
  if (failed(threads))
    return failure();
  KernelInfo info;
  info.symbol = name;
  info.inPlace = threads->inPlace;
  info.grid = threads->grid;
  if (!state->target.hasCode)
    return info;
  state->dump("threads", *threads->module);
  if (failed(state->translate(kernel, *threads->module, name, threads->grid)))
    return failure();
  return info;
}

LogicalResult GpuCodegen::State::translate(func::FuncOp kernel, ModuleOp loops, StringRef symbol, KernelGrid grid) {
  if (failed(lowerToLLVM(loops)))
    return failure();
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(loops, llvmContext, symbol);
  if (!translated)
    return failure();
  if (!machine) {
    auto created = createTargetMachine(target.arch);
    if (!created)
      return emitFault(kernel.getLoc(), llvm::toString(created.takeError()));
    machine = std::move(*created);
    module = std::make_unique<llvm::Module>("kernels", llvmContext);
    module->setTargetTriple(machine->getTargetTriple());
    module->setDataLayout(machine->createDataLayout());
  }
  translated->setTargetTriple(machine->getTargetTriple());
  translated->setDataLayout(machine->createDataLayout());
  llvm::Function *function = translated->getFunction(symbol);
  function->addFnAttr("nvvm.reqntid", std::to_string(grid.threads));
  // Without this attribute ptxas spills a few registers, so that more blocks fit on a multiprocessor.
  function->addFnAttr("nvvm.minctasm", "1");
  function->addFnAttr(llvm::Attribute::NoUnwind);
  for (llvm::Argument &argument : function->args())
    argument.addAttr(llvm::Attribute::getWithAlignment(llvmContext, llvm::Align(64)));
  if (llvm::Linker::linkModules(*module, std::move(translated)))
    return kernel.emitOpError("has generated code that cannot be linked with the code of the other kernels");
  return success();
}

/// Links libdevice, whose functions take the place of those of the C library that kernels call.
llvm::Error GpuCodegen::State::linkLibrary() {
  SmallVector<llvm::Function *> missing;
  for (llvm::Function &function : *module)
    if (function.isDeclaration() && !function.isIntrinsic())
      missing.push_back(&function);
  if (missing.empty())
    return llvm::Error::success();
  if (!toolkit)
    return llvm::createStringError("the kernels need " + missing[0]->getName() +
                                   " of f64, which comes with the CUDA toolkit; install it, or set CUDA_HOME to where "
                                   "it is");
  llvm::SMDiagnostic diagnostic;
  std::string path = libdevicePath(*toolkit);
  std::unique_ptr<llvm::Module> library = llvm::parseIRFile(path, diagnostic, llvmContext);
  if (!library)
    return llvm::createStringError("cannot read " + path + ": " + diagnostic.getMessage());
  library->setTargetTriple(machine->getTargetTriple());
  library->setDataLayout(machine->createDataLayout());
  llvm::StringSet<> kept;
  for (llvm::Function &function : *module)
    if (!function.isDeclaration())
      kept.insert(function.getName());
  for (llvm::Function *function : missing)
    function->setName("__nv_" + function->getName());
  if (llvm::Linker::linkModules(*module, std::move(library), llvm::Linker::LinkOnlyNeeded))
    return llvm::createStringError("cannot link " + path);
  llvm::internalizeModule(*module, [&](const llvm::GlobalValue &value) { return kept.contains(value.getName()); });
  return llvm::Error::success();
}

llvm::Expected<std::vector<char>> GpuCodegen::State::finish() {
  if (llvm::Error error = linkLibrary())
    return std::move(error);
  // Subnormal numbers of f32 are zeros, as on processors.
  for (llvm::Function &function : *module)
    function.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  llvm::PassBuilder builder(machine.get(), tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*module, modules);
  if (target.dump)
    *target.dump << "; optimised\n" << *module << "\n";
  SmallVector<char, 0> ptx;
  llvm::raw_svector_ostream stream(ptx);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("this LLVM cannot write PTX");
  passes.run(*module);
  if (target.dump)
    *target.dump << "// PTX\n" << StringRef(ptx.data(), ptx.size()) << "\n";
  if (toolkit) {
    std::string report;
    auto image = assemblePtx(*toolkit, target.arch, StringRef(ptx.data(), ptx.size()), &report);
    if (target.dump)
      *target.dump << "// ptxas\n" << report << "\n";
    return image;
  }
  isPtx = true;
  // The driver reads PTX up to a zero.
  ptx.push_back('\0');
  return std::vector<char>(ptx.begin(), ptx.end());
}

FailureOr<std::vector<char>> GpuCodegen::finish() {
  if (!state->module)
    return std::vector<char>();
  auto image = state->finish();
  if (!image)
    return emitFault(UnknownLoc::get(state->context), llvm::toString(image.takeError()));
  return std::move(*image);
}
