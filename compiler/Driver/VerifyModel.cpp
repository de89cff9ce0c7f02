//===- VerifyModel.cpp - Whether compilation keeps the results of a model
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/VerifyModel.h"
#include "absl/strings/str_cat.h"
#include "compiler/Driver/CompileSetup.h"
#include "compiler/Driver/ShrinkModel.h"
#include "compiler/Interp/Residues.h"
#include "compiler/Pipelines/VerifySteps.h"
#include "compiler/Support/Registration.h"
#include "dialects/Dist/DistOps.h"
#include "frontends/hf/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "runtime/base/text_file.h"

using namespace mlir;
using namespace bowline;

namespace {
/// The program to verify, and the words that describe it in messages.
struct Subject {
  OwningOpRef<ModuleOp> module;
  CompileOptions options;
  std::string words;
};
} // namespace

/// Writes the sizes of a smaller strategy into the lines that it was made from.
static void shrinkLines(dist::StrategyOp lines, const Strategy &strategy, int64_t microbatches) {
  if (dist::MeshOp mesh = lines.getMesh())
    mesh.setAxisSizes(llvm::map_to_vector(strategy.mesh, [](const Strategy::Axis &axis) { return axis.size; }));
  if (auto line = lines.getOnly<dist::MicrobatchesOp>())
    line.setCount(microbatches);
}

/// Fixes choices that the compiler would make by sizes, or by a memory limit that is for other sizes.
static void chooseForSmallSizes(dist::StrategyOp lines) {
  if (auto chunks = lines.getOnly<dist::OverlapChunksOp>(); chunks && !chunks.getCount())
    chunks.setCount(2); // for these sizes the cost model would choose none
  if (auto recompute = lines.getOnly<dist::RecomputeOp>(); recompute && recompute.getActivations() == "auto")
    recompute.setActivations("full"); // any choice of recomputation is a part of that
}

static absl::StatusOr<Subject> shrunkSubject(MLIRContext &context, const CompileOptions &options,
                                             DiagnosticCollector &diagnostics) {
  bool trains = bowline::trains(options.mode);
  BOWLINE_ASSIGN_OR_RETURN(hf::ModelConfig config, hf::readConfig(options.model));
  OwningOpRef<ModuleOp> given = ModuleOp::create(UnknownLoc::get(&context));
  BOWLINE_RETURN_IF_ERROR(addStrategy(*given, options, diagnostics));
  dist::StrategyOp lines = dist::StrategyOp::of(*given);
  FailureOr<Strategy> read = lines ? Strategy::fromOp(lines) : FailureOr<Strategy>(Strategy());
  if (failed(read))
    return diagnostics.status();
  const Strategy &whole = *read, strategy = shrinkStrategy(whole);
  int64_t microbatches = dist::microbatchesOf(*given), batch = trains ? options.batch / microbatches : 1;
  bool serves = options.mode == CompileMode::Serve;
  std::vector<std::string> remarks; // which the compilation has made already
  hf::ServeSizes serve = serves ? serveSizesOf(options, config, remarks) : hf::ServeSizes();
  SizedModel model{std::move(config), shrinkBatch(batch, batchRanksOf(whole), batchRanksOf(strategy)),
                   serves ? serve.context : options.seq, microbatches};
  SizedModel small = shrinkModel(model, strategy);
  Subject subject{
      {},
      options,
      absl::StrCat("a model of this structure with ", small.config.layers, " layers of width ", small.config.hidden)};
  for (auto [many, few] : llvm::zip_equal(whole.mesh, strategy.mesh))
    if (many.size != few.size)
      absl::StrAppend(&subject.words, ", ", many.name, "=", few.size, " instead of ", many.size, ",");
  hf::ImportOptions import;
  import.mode = trains ? hf::ImportMode::Train : serves ? hf::ImportMode::Serve : hf::ImportMode::Generate;
  if (serves)
    import.serve = shrinkServeSizes(serve, small.seq);
  import.batch = small.batch;
  import.seq = small.seq;
  BOWLINE_ASSIGN_OR_RETURN(subject.module, hf::importModel(context, small.config, import));
  if (lines) {
    lines->moveBefore(subject.module->getBody(), subject.module->getBody()->begin());
    shrinkLines(lines, strategy, small.microbatches);
  }
  return subject;
}

absl::StatusOr<std::string> bowline::verifyModel(const CompileOptions &options) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  DiagnosticCollector diagnostics(&context);
  Subject subject{{}, options, "the program"};
  if (StringRef(options.model).ends_with(".mlir")) {
    BOWLINE_RETURN_IF_ERROR(CheckTextFile(options.model));
    subject.module = parseSourceFile<ModuleOp>(options.model, &context);
    if (!subject.module)
      return diagnostics.status();
    BOWLINE_RETURN_IF_ERROR(addStrategy(*subject.module, options, diagnostics));
  } else {
    BOWLINE_ASSIGN_OR_RETURN(subject, shrunkSubject(context, options, diagnostics));
  }
  BOWLINE_ASSIGN_OR_RETURN(ChosenTarget target, chooseTarget(options, *subject.module));
  target.codegen.hasCode = false; // nothing runs it
  PipelineOptions pipeline = makePipelineOptions(subject.options, target);
  pipeline.threads = 1;
  if (options.from == Phase::Input)
    describeTarget(*subject.module, options, pipeline);
  pipeline.memoryLimit = 0; // the limit is for the sizes that were asked for
  pipeline.hasSmallSizes = true;
  if (dist::StrategyOp lines = dist::StrategyOp::of(*subject.module))
    chooseForSmallSizes(lines);
  EquivalenceChecker checker;
  if (failed(verifySteps(*subject.module, pipeline, options.from, options.to, checker)))
    return checker.isRefuted() ? absl::AbortedError(diagnostics.status().message()) : diagnostics.status();
  const EquivalenceChecker::Summary &summary = checker.summary();
  std::string modular = absl::StrCat("half of them in f64 and half modulo ", residues::kPrime, ", where ",
                                     summary.undefined, " of ", summary.elements, " elements have no value");
  if (!summary.unmeant.empty())
    modular = absl::StrCat("all in f64 and none modulo ", residues::kPrime, ", where '", summary.unmeant,
                           "' has no meaning, so that a difference below rounding would not be seen");
  return absl::StrCat("equivalence: ", summary.steps.size(), " steps kept what ", subject.words, " computes, ",
                      summary.unchanged, " had nothing to do; compared ", summary.tensors, " pairs of tensors, ",
                      modular, ", and ", summary.gradients, " gradients with differences of the loss",
                      summary.undecided == 0 ? "" : absl::StrCat(", which decide nothing about ", summary.undecided));
}
