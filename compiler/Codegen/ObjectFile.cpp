//===- ObjectFile.cpp - LLVM IR as a shared object
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/ObjectFile.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace llvm;
using namespace bowline;

/// Where the linker of the distribution's LLVM packages is, apart from PATH.
static constexpr StringLiteral kLlvmTools = "/usr/lib/llvm-22/bin";

static constexpr StringLiteral kTriple = "x86_64-unknown-linux-gnu";

std::string codegen::resolveCpu(StringRef cpu) {
  if (cpu != "native")
    return vectorBits(cpu) ? cpu.str() : std::string();
  StringMap<bool> features = sys::getHostCPUFeatures();
  auto hasAll = [&](ArrayRef<StringRef> names) {
    return all_of(names, [&](StringRef name) { return features.lookup(name); });
  };
  if (!hasAll({"avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe"}))
    return "x86-64-v2";
  return hasAll({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? "x86-64-v4" : "x86-64-v3";
}

int codegen::vectorBits(StringRef cpu) {
  return StringSwitch<int>(cpu).Case("x86-64-v2", 128).Case("x86-64-v3", 256).Case("x86-64-v4", 512).Default(0);
}

Expected<std::unique_ptr<TargetMachine>> codegen::createTargetMachine(StringRef cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  Triple triple(kTriple);
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("this LLVM cannot generate x86-64 code: " + error);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard;
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, cpu, /*Features=*/"", options, Reloc::PIC_, CodeModel::Small));
}

void codegen::prepareModule(Module &module, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    // The default is half of the registers, for the sake of scalar code around them.
    function.addFnAttr("prefer-vector-width", std::to_string(vectorBits(machine.getTargetCPU())));
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
  // Nothing to inline and nothing left to vectorise: the loops need only be cleaned.
  cantFail(builder.parsePassPipeline(
      passes, "function(early-cse<memssa>,instcombine,simplifycfg,loop-mssa(licm<allowspeculation>),"
              "early-cse<memssa>,instcombine,simplifycfg)"));
  passes.run(module, modules);
}

static Expected<std::string> findLinker() {
  for (StringRef name : {"ld.lld-22", "ld.lld"})
    if (auto path = sys::findProgramByName(name))
      return *path;
  if (auto path = sys::findProgramByName("ld.lld", {kLlvmTools}))
    return *path;
  return createStringError("ld.lld-22 is not installed or not in PATH; generated kernels are linked with it. Install "
                           "the package lld-22");
}

namespace {
/// A file that is removed when this goes out of scope.
class TemporaryFile {
public:
  static Expected<TemporaryFile> create(StringRef suffix) {
    SmallString<128> path;
    if (std::error_code error = sys::fs::createTemporaryFile("bowline-kernels", suffix, path))
      return createStringError(error, "cannot create a temporary file: " + error.message());
    return TemporaryFile(path);
  }
  StringRef path() const { return name; }

private:
  explicit TemporaryFile(StringRef path) : name(path), remover(std::make_unique<FileRemover>(path)) {}

  SmallString<128> name;
  std::unique_ptr<FileRemover> remover;
};
} // namespace

static Expected<std::vector<char>> link(StringRef object) {
  auto linker = findLinker();
  if (!linker)
    return linker.takeError();
  auto input = TemporaryFile::create("o"), output = TemporaryFile::create("so"),
       messages = TemporaryFile::create("txt");
  for (auto *file : {&input, &output, &messages})
    if (!*file)
      return file->takeError();
  {
    std::error_code error;
    raw_fd_ostream os(input->path(), error);
    os << object;
    os.close();
    if (!error)
      error = os.error();
    // An error that is not cleared ends the process when the stream does.
    os.clear_error();
    if (error)
      return createStringError("cannot write the temporary file " + input->path() + ": " + error.message() +
                               "; free space there, or set TMPDIR to a folder with space");
  }
  StringRef arguments[] = {*linker,       "-shared", "--build-id=none", "--hash-style=gnu", "-Bsymbolic",
                           input->path(), "-o",      output->path()};
  std::optional<StringRef> redirects[] = {StringRef(), messages->path(), messages->path()};
  std::string error;
  int code = sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects, 0, 0, &error);
  if (code != 0) {
    auto text = MemoryBuffer::getFile(messages->path());
    return createStringError(*linker + " failed with exit code " + Twine(code) + ": " + error +
                             (text ? (*text)->getBuffer() : StringRef()));
  }
  auto image = MemoryBuffer::getFile(output->path());
  if (!image)
    return createStringError("cannot read what " + *linker + " wrote: " + image.getError().message());
  return std::vector<char>((*image)->getBufferStart(), (*image)->getBufferEnd());
}

Expected<std::vector<char>> codegen::emitSharedObject(Module &module, TargetMachine &machine) {
  SmallVector<char, 0> object;
  raw_svector_ostream os(object);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("this LLVM cannot write x86-64 object files");
  passes.run(module);
  return link(StringRef(object.data(), object.size()));
}
