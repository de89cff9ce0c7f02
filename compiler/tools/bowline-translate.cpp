//===- bowline-translate.cpp - Plan files to the plan dialect and back
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CLI/CLI.hpp"
#include "compiler/Driver/Diagnostics.h"
#include "compiler/Emit/EmitPlan.h"
#include "compiler/Support/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/output_files.h"
#include "runtime/base/text_file.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/tools/tool_support.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

using namespace mlir;
using namespace bowline;

namespace {

struct CommandLine {
  bool planToMlir = false, mlirToPlan = false;
  std::string input, output;
};

absl::Status planToMlir(MLIRContext &context, const DiagnosticCollector &diagnostics, const CommandLine &line) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromFile(line.input));
  std::unique_ptr<fbs::PlanT> unpacked(plan->UnPack());
  OwningOpRef<ModuleOp> module = importPlan(&context, *unpacked);
  if (!module)
    return diagnostics.status();
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Locations are the commands' provenance: they must survive.
  module->print(stream, OpPrintingFlags().enableDebugInfo());
  stream << "\n";
  return line.output.empty() || line.output == "-" ? PrintToStdout(text) : WriteFileAtomically(line.output, text);
}

absl::Status mlirToPlan(MLIRContext &context, const DiagnosticCollector &diagnostics, const CommandLine &line) {
  if (line.output.empty())
    return absl::InvalidArgumentError("-o is missing: name the plan file to write");
  if (line.output == "-")
    return absl::InvalidArgumentError("-o -: a plan is not written to the standard output; name a file");
  // The parser gives neither the cause of the failed read nor a remedy.
  if (line.input != "-" && ::access(line.input.c_str(), R_OK) != 0)
    return ErrnoToStatus(errno, "cannot open '" + line.input + "'");
  if (std::filesystem::is_directory(line.input))
    return absl::InvalidArgumentError("'" + line.input + "' is a directory; give the name of a file");
  BOWLINE_RETURN_IF_ERROR(CheckTextFile(line.input));
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(line.input, &context);
  if (!module)
    return diagnostics.status();
  auto plan = emitPlan(*module);
  if (failed(plan))
    return diagnostics.status();
  return WritePlanFile(**plan, line.output);
}

absl::Status run(const CommandLine &line) {
  BOWLINE_RETURN_IF_ERROR(CheckOutputs({{"INPUT", line.input}}, {{"-o", line.output}}));
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  DiagnosticCollector diagnostics(&context);
  return line.planToMlir ? planToMlir(context, diagnostics, line) : mlirToPlan(context, diagnostics, line);
}

} // namespace

int main(int argc, char **argv) {
  PrepareSignals("bowline-translate");
  CLI::App app("Translates plan files to the plan dialect and back, byte for byte");
  CommandLine line;
  auto *direction = app.add_option_group("direction");
  direction->add_flag("--plan-to-mlir", line.planToMlir, "Read a plan file, write the plan dialect");
  direction->add_flag("--mlir-to-plan", line.mlirToPlan, "Read the plan dialect, write a plan file");
  direction->require_option(1);
  app.add_option("INPUT", line.input, "The file to read")->required();
  app.add_option("-o,--output", line.output, "The file to write ('-': standard output, for --plan-to-mlir)");
  int exitCode = 0;
  if (!ParseCommandLine(app, argc, argv, &exitCode))
    return exitCode;
  return ReportStatus("bowline-translate", run(line));
}
