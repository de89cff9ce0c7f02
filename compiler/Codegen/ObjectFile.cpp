//===- ObjectFile.cpp - LLVM IR as machine code
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/ObjectFile.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/Binary.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace llvm;
using namespace bowline;
using codegen::TargetCpu;

/// Where the linker of the distribution's LLVM packages is, apart from PATH.
static constexpr StringLiteral kLlvmTools = "/usr/lib/llvm-22/bin";

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
    // The default is half of the registers, for the sake of scalar code around them.
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
/// A folder that is removed, with what is in it, when this goes out of scope.
class TemporaryFolder {
public:
  static Expected<TemporaryFolder> create() {
    SmallString<128> path;
    if (std::error_code error = sys::fs::createUniqueDirectory("bowline-kernels", path))
      return createStringError(error, "cannot create a temporary folder: " + error.message());
    return TemporaryFolder(path);
  }
  TemporaryFolder(TemporaryFolder &&other) noexcept : path(std::exchange(other.path, {})) {}
  ~TemporaryFolder() {
    if (!path.empty())
      (void)sys::fs::remove_directories(path);
  }
  std::string file(const Twine &name) const { return (path + "/" + name).str(); }

private:
  explicit TemporaryFolder(StringRef path) : path(path) {}

  SmallString<128> path;
};
} // namespace

static Error writeFile(const std::string &path, StringRef bytes) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  os << bytes;
  os.close();
  if (!error)
    error = os.error();
  // An error that is not cleared ends the process when the stream does.
  os.clear_error();
  if (error)
    return createStringError("cannot write the temporary file " + path + ": " + error.message() +
                             "; free space there, or set TMPDIR to a folder with space");
  return Error::success();
}

/// `object` with its function called `symbol`.
static Expected<std::string> rename(const std::string &object, StringRef symbol) {
  auto binary = object::createBinary(MemoryBufferRef(object, "kernel"));
  if (!binary)
    return binary.takeError();
  objcopy::ConfigManager config;
  config.Common.SymbolsToRename[codegen::kKernelSymbol] = symbol;
  SmallVector<char, 0> renamed;
  raw_svector_ostream os(renamed);
  if (Error error = objcopy::executeObjcopyOnBinary(config, **binary, os))
    return std::move(error);
  return std::string(renamed.begin(), renamed.end());
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

/// What the linker's messages say after "error:", without what surrounds them, such as the stack of a linker that a
/// full disk has killed.
static std::string errorsIn(StringRef messages) {
  std::string errors;
  SmallVector<StringRef> lines;
  messages.split(lines, '\n');
  for (StringRef line : lines)
    if (StringRef reason = line.split("error: ").second; !reason.empty())
      errors += (errors.empty() ? "" : "; ") + reason.str();
  return errors;
}

Expected<std::vector<char>> codegen::linkObjects(ArrayRef<KernelObject> objects) {
  auto linker = findLinker();
  if (!linker)
    return linker.takeError();
  auto folder = TemporaryFolder::create();
  if (!folder)
    return folder.takeError();
  std::string output = folder->file("kernels.so"), messages = folder->file("messages.txt");
  std::vector<std::string> inputs;
  for (const auto &[symbol, object] : objects) {
    auto renamed = rename(object, symbol);
    if (!renamed)
      return renamed.takeError();
    inputs.push_back(folder->file(Twine(inputs.size()) + ".o"));
    if (Error error = writeFile(inputs.back(), *renamed))
      return std::move(error);
  }
  std::vector<StringRef> arguments = {*linker, "-shared", "--build-id=none", "--hash-style=gnu", "-Bsymbolic",
                                      "-o",    output};
  llvm::append_range(arguments, inputs);
  std::optional<StringRef> redirects[] = {StringRef(), messages, messages};
  std::string error;
  int code = sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects, 0, 0, &error);
  if (code != 0) {
    auto text = MemoryBuffer::getFile(messages);
    std::string reasons = text ? errorsIn((*text)->getBuffer()) : "";
    return createStringError(*linker + " could not link the temporary file " + output + ", exit code " + Twine(code) +
                             ": " + error + reasons);
  }
  auto image = MemoryBuffer::getFile(output);
  if (!image)
    return createStringError("cannot read what " + *linker + " wrote: " + image.getError().message());
  return std::vector<char>((*image)->getBufferStart(), (*image)->getBufferEnd());
}
