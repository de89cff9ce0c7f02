//===- EmulatedCode.cpp - Generated kernels for GPUs as code of this processor
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Codegen/EmulatedCode.h"

#include "compiler/Codegen/Cpu/CpuCodegen.h"
#include "compiler/Codegen/Gpu/GpuKernelEmitter.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Codegen/TargetCpu.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Support/gpu_blocks/gpu_blocks.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <algorithm>
#include <sstream>

using namespace bowline;
using namespace bowline::test;
using namespace bowline::testing;

namespace {

/// Rounds f32 to bf16 in integers, as cards do: not every processor has an instruction for it, nor every C library a
/// function.
llvm::Value *roundToBf16(llvm::IRBuilder<> &b, llvm::Value *number, llvm::Type *narrow) {
  llvm::Type *word = number->getType()->getWithNewType(b.getInt32Ty());
  llvm::Value *bits = b.CreateBitCast(number, word), *upper = b.CreateLShr(bits, 16);
  llvm::Value *half =
      b.CreateAdd(b.CreateAnd(upper, llvm::ConstantInt::get(word, 1)), llvm::ConstantInt::get(word, 0x7FFF));
  llvm::Value *rounded = b.CreateLShr(b.CreateAdd(bits, half), 16);
  llvm::Value *quiet = b.CreateOr(upper, llvm::ConstantInt::get(word, 0x40));
  llvm::Value *result = b.CreateSelect(b.CreateFCmpUNO(number, number), quiet, rounded);
  return b.CreateBitCast(b.CreateTrunc(result, word->getWithNewType(b.getInt16Ty())), narrow);
}

/// Calls of the device's functions become calls of the state's.
llvm::Error replaceDevice(llvm::Module &module, llvm::StringRef name, bool &hasBarriers) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, 0), *i32 = llvm::Type::getInt32Ty(context);
  llvm::Function *kernel = module.getFunction(name);
  kernel->setCallingConv(llvm::CallingConv::C);
  kernel->setLinkage(llvm::GlobalValue::InternalLinkage);

  // The state is a last parameter.
  std::vector<llvm::Type *> types(kernel->getFunctionType()->params());
  types.push_back(pointer);
  auto *wide = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
                                      llvm::GlobalValue::InternalLinkage, "threads", module);
  llvm::ValueToValueMapTy mapping;
  for (llvm::Argument &argument : kernel->args())
    mapping[&argument] = wide->getArg(argument.getArgNo());
  llvm::SmallVector<llvm::ReturnInst *> returns;
  llvm::CloneFunctionInto(wide, kernel, mapping, llvm::CloneFunctionChangeType::LocalChangesOnly, returns);
  kernel->eraseFromParent();
  llvm::Value *state = wide->getArg(wide->arg_size() - 1);

  for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(*wide)))
    if (llvm::isa<llvm::FPTruncInst>(instruction) && instruction.getType()->getScalarType()->isBFloatTy()) {
      llvm::IRBuilder<> b(&instruction);
      instruction.replaceAllUsesWith(roundToBf16(b, instruction.getOperand(0), instruction.getType()));
      instruction.eraseFromParent();
    }

  llvm::SmallVector<llvm::CallInst *> calls;
  for (llvm::Instruction &instruction : llvm::instructions(*wide))
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
      if (call->getCalledFunction() && call->getCalledFunction()->getName().starts_with("llvm.nvvm."))
        calls.push_back(call);
  for (llvm::CallInst *call : calls) {
    llvm::StringRef callee = call->getCalledFunction()->getName();
    llvm::IRBuilder<> b(call);
    std::vector<llvm::Value *> arguments = {state};
    BlockFunction function = kBlockFunctionCount;
    if (callee == "llvm.nvvm.read.ptx.sreg.tid.x") {
      function = kThreadNumber;
    } else if (callee == "llvm.nvvm.read.ptx.sreg.ctaid.x") {
      function = kBlockNumber;
    } else if (callee == "llvm.nvvm.barrier.cta.sync.aligned.all") {
      function = kBarrier;
      hasBarriers = true;
    } else if (callee == "llvm.nvvm.shfl.sync.bfly.i32") {
      function = kShuffle;
      hasBarriers = true;
      arguments.push_back(call->getArgOperand(1));
      arguments.push_back(call->getArgOperand(2));
    } else if (callee == "llvm.nvvm.bar.warp.sync") {
      function = kShuffle;
      hasBarriers = true;
      arguments.push_back(b.getInt32(0));
      arguments.push_back(b.getInt32(0));
    } else {
      return llvm::createStringError("the emulator does not know " + callee);
    }
    std::vector<llvm::Type *> parameters;
    for (llvm::Value *argument : arguments)
      parameters.push_back(argument->getType());
    llvm::Value *place = b.CreateConstGEP1_64(pointer, state, function);
    llvm::Value *target = b.CreateLoad(pointer, place);
    llvm::Value *result = b.CreateCall(
        llvm::FunctionType::get(function == kBarrier ? b.getVoidTy() : i32, parameters, false), target, arguments);
    if (!call->getType()->isVoidTy())
      call->replaceAllUsesWith(result);
    call->eraseFromParent();
  }

  // Shared memory is a variable: blocks run one after another.
  size_t sharedBytes = 0;
  llvm::GlobalVariable *shared = nullptr;
  for (llvm::GlobalVariable &global : module.globals())
    if (global.getAddressSpace() == 3) {
      shared = &global;
      sharedBytes = module.getDataLayout().getTypeAllocSize(global.getValueType());
    }

  // kernel(arguments, state): without a state, shared memory is poisoned and nothing else happens.
  auto *outer =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer}, false),
                             llvm::GlobalValue::ExternalLinkage, codegen::kKernelSymbol, module);
  auto *poison = llvm::BasicBlock::Create(context, "poison", outer),
       *run = llvm::BasicBlock::Create(context, "run", outer),
       *choose = llvm::BasicBlock::Create(context, "choose", outer, poison);
  llvm::IRBuilder<> b(choose);
  b.CreateCondBr(b.CreateIsNull(outer->getArg(1)), poison, run);
  b.SetInsertPoint(poison);
  if (shared)
    b.CreateMemSet(shared, b.getInt8(0xFF), sharedBytes, llvm::Align(1));
  b.CreateRetVoid();
  b.SetInsertPoint(run);
  std::vector<llvm::Value *> arguments;
  for (size_t i = 0; i + 1 < wide->arg_size(); ++i)
    arguments.push_back(b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, outer->getArg(0), i)));
  arguments.push_back(outer->getArg(1));
  b.CreateCall(wide, arguments);
  b.CreateRetVoid();
  return llvm::Error::success();
}

/// Collects emulated kernels.
/// An entry of the cache: its object begins with a line that says how the kernel is launched.
CachedKernel toEntry(const EmulatedCode &code) {
  std::string text;
  llvm::raw_string_ostream line(text);
  line << code.hasBarriers << ' ' << code.info.grid->blocks << ' ' << code.info.grid->threads;
  for (int64_t constant : code.info.grid->constants)
    line << ' ' << constant;
  line << '\n' << code.object.object;
  return {.inPlace = code.info.inPlace, .object = std::move(text)};
}

EmulatedCode fromEntry(CachedKernel entry, const std::string &symbol) {
  auto [line, object] = llvm::StringRef(entry.object).split('\n');
  std::istringstream words(line.str());
  EmulatedCode code;
  KernelGrid grid;
  words >> code.hasBarriers >> grid.blocks >> grid.threads;
  for (int64_t constant; words >> constant;)
    grid.constants.push_back(constant);
  code.info = {.symbol = symbol, .grid = std::move(grid), .inPlace = std::move(entry.inPlace)};
  code.object = {symbol, object.str()};
  return code;
}

class EmulatedCodegen : public KernelCodegen {
public:
  EmulatedCodegen(bool hasCode, std::shared_ptr<KernelCache> cache) : hasCode(hasCode), cache(std::move(cache)) {}

  llvm::FailureOr<KernelInfo> add(mlir::func::FuncOp kernel, llvm::StringRef symbol) override {
    if (context != kernel.getContext()) {
      context = kernel.getContext();
      mlir::DialectRegistry registry;
      codegen::registerCodegenDialects(registry);
      context->appendDialectRegistry(registry);
      context->loadAllAvailableDialects();
    }
    std::string name = (symbol.empty() ? kernel.getSymName() : symbol).str();
    std::replace_if(name.begin(), name.end(), [](char c) { return !llvm::isAlnum(c) && c != '_'; }, '_');
    auto code = findOrEmulate(kernel, name);
    if (!code)
      return kernel.emitOpError(llvm::toString(code.takeError()));
    size_t parameters = kernel.getNumArguments() + kernel.getNumResults();
    functions += name + " " + std::to_string(parameters) + (code->hasBarriers ? " 1\n" : " 0\n");
    objects.push_back(std::move(code->object));
    return code->info;
  }

  llvm::FailureOr<KernelInfo> addEpilogue(mlir::func::FuncOp epilogue, llvm::StringRef) override {
    return epilogue.emitOpError("a GPU has no epilogues of generated code");
  }

  llvm::FailureOr<std::vector<char>> finish() override {
    if (!hasCode)
      return std::vector<char>();
    auto image = codegen::linkObjects(objects);
    if (!image)
      return mlir::emitError(mlir::UnknownLoc::get(context), llvm::toString(image.takeError()));
    std::string text = "BOWLINE EMULATED\n" + functions + "\n" + std::to_string(image->size()) + "\n";
    std::vector<char> bytes(text.begin(), text.end());
    bytes.insert(bytes.end(), image->begin(), image->end());
    return bytes;
  }

  llvm::StringRef imageFormat() const override { return hasCode ? llvm::StringRef("ptx") : kNoImageFormat; }

private:
  llvm::Expected<EmulatedCode> findOrEmulate(mlir::func::FuncOp kernel, const std::string &name) {
    if (!cache)
      return emulateKernel(kernel, name);
    // As in CpuCodegen: names and locations do not change the code.
    mlir::OwningOpRef<mlir::func::FuncOp> unnamed = kernel.clone();
    unnamed->setSymName("kernel");
    std::string ir;
    llvm::raw_string_ostream stream(ir);
    unnamed->print(stream, mlir::OpPrintingFlags().enableDebugInfo(false));
    auto cpu = codegen::targetCpu("native");
    if (!cpu.ok())
      return llvm::createStringError(std::string(cpu.status().message()));
    Sha256Digest key = cache->keyOf(ir, "emulated on " + cpu->name);
    if (auto entry = cache->find(key))
      return fromEntry(std::move(*entry), name);
    auto code = emulateKernel(kernel, name);
    if (code)
      cache->store(key, toEntry(*code));
    return code;
  }

  bool hasCode;
  std::shared_ptr<KernelCache> cache;
  mlir::MLIRContext *context = nullptr;
  std::string functions;
  std::vector<codegen::KernelObject> objects;
};

} // namespace

llvm::Expected<EmulatedCode> test::emulateKernel(mlir::func::FuncOp kernel, const std::string &symbol) {
  constexpr llvm::StringLiteral name = "threads_of_gpu";
  auto threads = codegen::emitGpuKernel(kernel, name);
  if (failed(threads) || failed(codegen::lowerToLLVM(*threads->module)))
    return llvm::createStringError("no code for GPUs for " + kernel.getSymName());
  EmulatedCode code;
  code.info.symbol = symbol;
  code.info.grid = threads->grid;
  code.info.inPlace = threads->inPlace;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(*threads->module, context, "emulated");
  auto cpu = codegen::targetCpu("native");
  if (!cpu.ok())
    return llvm::createStringError(std::string(cpu.status().message()));
  auto machine = codegen::createTargetMachine(*cpu);
  if (!machine)
    return machine.takeError();
  if (!module)
    return llvm::createStringError("the kernel could not be translated");
  module->setDataLayout((*machine)->createDataLayout());
  if (llvm::Error error = replaceDevice(*module, name, code.hasBarriers))
    return std::move(error);
  codegen::prepareModule(*module, **machine, *cpu);
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(*module, &stream))
    return llvm::createStringError(problems);
  auto object = codegen::emitObject(*module, **machine);
  if (!object)
    return object.takeError();
  code.object = {symbol, std::move(*object)};
  return code;
}

std::unique_ptr<KernelCodegen> test::createEmulatedCodegen(bool hasCode, std::shared_ptr<KernelCache> cache) {
  return std::make_unique<EmulatedCodegen>(hasCode, std::move(cache));
}
