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
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>

#include "compiler/Codegen/Gpu/GpuKernelEmitter.h"
#include "compiler/Codegen/LowerToLLVM.h"
#include "compiler/Codegen/ObjectFile.h"
#include "compiler/Codegen/TargetCpu.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = 64 << 10;

/// What the code calls, by the position of the function's address.
enum Function { kThread, kBlock, kBarrier, kShuffle, kFunctionCount };

struct Block;

/// One block while it runs. The code has its address, and finds the functions at its begin.
struct BlockState {
  void *functions[kFunctionCount];
  uint32_t block = 0, thread = 0;

  struct Fiber {
    ucontext_t context;
    bool isDone = false, waitsAtBarrier = false;
  };
  struct Warp {
    std::array<uint32_t, kWarp> values, results[2];
    int arrived = 0;
    uint64_t generation = 0;
  };
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  ucontext_t scheduler;
  uint64_t barriers = 0, progress = 0;
  void (*entry)(void *const *, BlockState *) = nullptr;
  void *const *arguments = nullptr;

  void yield() {
    Fiber &own = fibers[thread];
    swapcontext(&own.context, &scheduler);
  }
};

uint32_t threadOf(BlockState *state) { return state->thread; }
uint32_t blockOf(BlockState *state) { return state->block; }

void barrier(BlockState *state) {
  uint64_t number = state->barriers;
  state->fibers[state->thread].waitsAtBarrier = true;
  ++state->progress;
  while (state->barriers == number)
    state->yield();
}

uint32_t shuffle(BlockState *state, uint32_t value, uint32_t distance) {
  uint32_t lane = state->thread % kWarp;
  BlockState::Warp &warp = state->warps[state->thread / kWarp];
  uint64_t generation = warp.generation;
  warp.values[lane] = value;
  ++state->progress;
  if (++warp.arrived == kWarp) {
    warp.results[generation % 2] = warp.values;
    warp.arrived = 0;
    ++warp.generation;
  }
  while (warp.generation == generation)
    state->yield();
  return warp.results[generation % 2][lane ^ distance];
}

void runFiber(uint32_t low, uint32_t high) {
  auto *state = reinterpret_cast<BlockState *>(static_cast<uintptr_t>(high) << 32 | low);
  state->entry(state->arguments, state);
  state->fibers[state->thread].isDone = true;
  ++state->progress;
  state->yield();
}

/// All threads of one block.
class Stacks {
public:
  explicit Stacks(size_t count) : bytes(count * kStackBytes) {
    start = static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Stacks() { munmap(start, bytes); }
  char *at(size_t i) { return start + i * kStackBytes; }

private:
  size_t bytes;
  char *start;
};

void runBlock(BlockState &state, Stacks &stacks, std::mt19937_64 &random) {
  size_t threads = state.fibers.size();
  auto address = reinterpret_cast<uintptr_t>(&state);
  for (size_t i = 0; i < threads; ++i) {
    BlockState::Fiber &fiber = state.fibers[i];
    fiber.isDone = fiber.waitsAtBarrier = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks.at(i);
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&runFiber), 2, static_cast<uint32_t>(address),
                static_cast<uint32_t>(address >> 32));
  }
  std::vector<uint32_t> order(threads);
  std::iota(order.begin(), order.end(), 0);
  while (true) {
    std::shuffle(order.begin(), order.end(), random);
    uint64_t before = state.progress;
    size_t done = 0, waiting = 0;
    for (uint32_t i : order) {
      if (state.fibers[i].isDone || state.fibers[i].waitsAtBarrier)
        continue;
      state.thread = i;
      swapcontext(&state.scheduler, &state.fibers[i].context);
    }
    for (BlockState::Fiber &fiber : state.fibers) {
      done += fiber.isDone;
      waiting += fiber.waitsAtBarrier;
    }
    if (done == threads)
      return;
    if (waiting == threads) {
      ++state.barriers;
      for (BlockState::Fiber &fiber : state.fibers)
        fiber.waitsAtBarrier = false;
    } else if (state.progress == before) {
      ADD_FAILURE() << "block " << state.block << ": " << waiting << " of " << threads << " threads wait at a barrier, "
                    << done << " have ended, and the others wait for lanes of their warp that never come";
      return;
    }
  }
}

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

/// Calls of the device's functions become calls of the state's; returns how many bytes of shared memory there are.
size_t replaceDevice(llvm::Module &module, llvm::StringRef name, bool &hasBarriers) {
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
    Function function = kFunctionCount;
    if (callee == "llvm.nvvm.read.ptx.sreg.tid.x") {
      function = kThread;
    } else if (callee == "llvm.nvvm.read.ptx.sreg.ctaid.x") {
      function = kBlock;
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
      ADD_FAILURE() << "the emulator does not know " << callee.str();
      return 0;
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
  return sharedBytes;
}

} // namespace

EmulatedKernel::EmulatedKernel(mlir::func::FuncOp kernel) {
  auto threads = codegen::emitGpuKernel(kernel, "threads_of_gpu");
  if (failed(threads) || failed(codegen::lowerToLLVM(*threads->module))) {
    ADD_FAILURE() << "no code for GPUs for " << kernel.getSymName().str();
    return;
  }
  kernelInfo.grid = threads->grid;
  kernelInfo.inPlace = threads->inPlace;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(*threads->module, context, "emulated");
  auto cpu = codegen::targetCpu("native");
  auto machine = codegen::createTargetMachine(*cpu);
  if (!module || !machine) {
    ADD_FAILURE() << "the kernel could not be translated";
    return;
  }
  module->setDataLayout((*machine)->createDataLayout());
  sharedBytes = replaceDevice(*module, "threads_of_gpu", hasBarriers);
  codegen::prepareModule(*module, **machine, *cpu);
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(*module, &stream)) {
    ADD_FAILURE() << problems;
    return;
  }
  auto object = codegen::emitObject(*module, **machine);
  if (!object) {
    ADD_FAILURE() << llvm::toString(object.takeError());
    return;
  }
  auto image = codegen::linkObjects({codegen::KernelObject{"emulated", std::move(*object)}});
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
  std::mt19937_64 random(seed);
  BlockState state;
  state.functions[kThread] = reinterpret_cast<void *>(&threadOf);
  state.functions[kBlock] = reinterpret_cast<void *>(&blockOf);
  state.functions[kBarrier] = reinterpret_cast<void *>(&barrier);
  state.functions[kShuffle] = reinterpret_cast<void *>(&shuffle);
  state.entry = reinterpret_cast<void (*)(void *const *, BlockState *)>(dlsym(handle, "emulated"));
  state.arguments = arguments.data();
  size_t threads = kernelInfo.grid->threads;
  state.fibers.resize(threads);
  state.warps.resize((threads + kWarp - 1) / kWarp);
  std::vector<uint32_t> blocks(kernelInfo.grid->blocks);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  std::unique_ptr<Stacks> stacks;
  if (hasBarriers)
    stacks = std::make_unique<Stacks>(threads);
  for (uint32_t block : blocks) {
    state.block = block;
    state.entry(arguments.data(), nullptr);
    if (hasBarriers) {
      runBlock(state, *stacks, random);
      continue;
    }
    for (state.thread = 0; state.thread < threads; ++state.thread)
      state.entry(arguments.data(), &state);
  }
}
