//===- bowline-opt.cpp - Parse, transform, verify and interpret Bowline IR
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/VerifyEachPass.h"
#include "compiler/Interp/InterpretPass.h"
#include "compiler/Support/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "runtime/base/text_file.h"
#include "runtime/tools/flag_list.h"
#include "runtime/tools/tool_support.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::OptionCategory interpretCategory("Reference interpreter");
static cl::opt<std::string> interpretCallee(
    "interpret", cl::value_desc("name"), cl::cat(interpretCategory),
    cl::desc("After all passes, run this graph.func or graph.entry with the reference interpreter and print a summary "
             "of its results instead of the IR"));
static cl::list<std::string>
    interpretInputs("interpret-inputs", cl::CommaSeparated, cl::value_desc("a.npy,... or random:SEED"),
                    cl::cat(interpretCategory),
                    cl::desc("One .npy file per argument (f32, f64, i32, i64), or random values for all"));
static cl::opt<std::string> interpretOutputs("interpret-outputs", cl::value_desc("folder"), cl::cat(interpretCategory),
                                             cl::desc("Write every result to NAME.npy in this folder"));
static cl::opt<int64_t> interpretSeed("interpret-seed", cl::init(0), cl::cat(interpretCategory),
                                      cl::desc("Seed of the variables' initial values"));

/// Set by --verify-each=equiv.
static bool verifiesEquivalence = false;

/// The words of MLIR's option --verify-each, which takes a boolean, and one more.
static constexpr StringLiteral kVerifyEach("verify-each");

/// Takes --verify-each=equiv out of the arguments, where MLIR's parser would refuse it.
static void takeVerifyEach(int &argc, char **argv) {
  auto isEquiv = [](StringRef argument) {
    return argument.ltrim('-') == (kVerifyEach + "=equiv").str() && argument.starts_with("-");
  };
  char **end = std::remove_if(argv + 1, argv + argc, isEquiv);
  verifiesEquivalence = end != argv + argc;
  argc = static_cast<int>(end - argv);
  *end = nullptr;
}

static void describeVerifyEach(DialectRegistry &registry) {
  MlirOptMainConfig::registerCLOptions(registry);
  if (cl::Option *option = cl::getRegisteredOptions().lookup(kVerifyEach))
    option->setDescription("Run the verifier after each transformation pass; equiv: also interpret the module before "
                           "and after each, all ranks in lockstep, in f64 and modulo a prime, and fail where a pass "
                           "changes what is computed (docs/checker.md)");
}

/// The driver of mlir-opt, with a comparison of results. Returns the exit code: 2 where a pass changes a result.
static int equivalenceMain(StringRef inputFilename, StringRef outputFilename, DialectRegistry &registry) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputFilename, &error);
  std::unique_ptr<llvm::ToolOutputFile> output = input ? openOutputFile(outputFilename, &error) : nullptr;
  if (!output) {
    llvm::errs() << error << "\n";
    return EXIT_FAILURE;
  }
  constexpr int kCheckFailed = 2;
  std::vector<std::shared_ptr<const bool>> refutations; // one per module of the input
  MlirOptMainConfig commandLine = MlirOptMainConfig::createFromCLOptions();
  MlirOptMainConfig config = commandLine;
  config.setPassPipelineSetupFn([&](PassManager &manager) -> LogicalResult {
    if (failed(commandLine.setupPassPipeline(manager)))
      return failure();
    refutations.push_back(bowline::verifyEachPass(manager));
    return success();
  });
  if (failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return llvm::any_of(refutations, [](const auto &isRefuted) { return *isRefuted; }) ? kCheckFailed : EXIT_FAILURE;
  output->keep();
  return EXIT_SUCCESS;
}

/// The driver of mlir-opt with interpretation as the last step of the pipeline, and results in place of the IR.
static LogicalResult interpretMain(StringRef inputFilename, StringRef outputFilename, DialectRegistry &registry) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputFilename, &error);
  std::unique_ptr<llvm::ToolOutputFile> output = input ? openOutputFile(outputFilename, &error) : nullptr;
  if (!output) {
    llvm::errs() << error << "\n";
    return failure();
  }
  bowline::InterpretOptions options{
      interpretCallee, {interpretInputs.begin(), interpretInputs.end()}, interpretOutputs, interpretSeed};
  MlirOptMainConfig commandLine = MlirOptMainConfig::createFromCLOptions();
  MlirOptMainConfig config = commandLine;
  config.setPassPipelineSetupFn([&](PassManager &manager) -> LogicalResult {
    if (failed(commandLine.setupPassPipeline(manager)))
      return failure();
    manager.addPass(bowline::createInterpretPass(options, output->os()));
    return success();
  });
  if (failed(MlirOptMain(llvm::nulls(), std::move(input), registry, config)))
    return failure();
  output->keep();
  return success();
}

/// The flags that LLVM's library knows, passes among them, by their names. Those that it hides are for its own
/// developers.
static std::vector<bowline::CommandInfo> describeFlags() {
  bowline::CommandInfo command;
  for (const auto &[name, option] : cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == cl::NotHidden && !name.empty())
      command.flags.push_back({{(name.size() == 1 ? "-" : "--") + name.str()},
                               option->getValueExpectedFlag() == cl::ValueRequired,
                               {},
                               option->HelpStr.str()});
  llvm::sort(command.flags, [](const auto &lhs, const auto &rhs) { return lhs.names < rhs.names; });
  return {command};
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  DialectRegistry registry;
  bowline::registerAllDialects(registry);
  bowline::registerAllPasses();
  takeVerifyEach(argc, argv);
  describeVerifyEach(registry);
  std::string header = registerCLIOptions("Bowline's optimizer driver", registry);
  if (argc == 2 && StringRef(argv[1]) == bowline::kPrintFlags) {
    llvm::outs() << bowline::FlagsToText(describeFlags());
    return EXIT_SUCCESS;
  }
  auto [input, output] = parseCLIOptions(argc, argv, header);
  if (absl::Status checked = bowline::CheckTextFile(input); !checked.ok())
    return bowline::ReportStatus("bowline-opt", checked);
  if (verifiesEquivalence && interpretCallee.empty())
    return equivalenceMain(input, output, registry);
  if (interpretCallee.empty())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(interpretMain(input, output, registry));
}
