//===- StrategySource.cpp - The strategy that a compilation has, from a file and from flags
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/StrategySource.h"
#include "absl/strings/str_cat.h"
#include "compiler/Driver/FlagUses.h"
#include "compiler/Driver/StrategyRecord.h"
#include "mlir/Parser/Parser.h"
#include "passes/Strategy/Strategy.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/text_file.h"
#include "llvm/ADT/StringExtras.h"

#include <filesystem>

using namespace mlir;
using namespace bowline;

/// A flag that was given takes effect, so the last phase that reads it has to come.
static absl::Status checkPhases(const CompileOptions &options) {
  const StrategyFlags &flags = options.strategy;
  struct Choice {
    bool isMade;
    const char *flag;
  };
  const Choice choices[] = {{!options.strategyFile.empty(), "--strategy"},
                            {!flags.mesh.empty(), "--mesh"},
                            {!flags.stages.empty(), "--stages"},
                            {!flags.schedule.empty(), "--schedule"},
                            {flags.microbatches.has_value(), "--microbatches"},
                            {flags.sequenceParallel, "--sequence-parallel"},
                            {flags.zero.has_value(), "--zero"},
                            {!flags.zeroAxis.empty(), "--zero-axis"},
                            {flags.prefetch.has_value(), "--prefetch"},
                            {flags.zeroOnce, "--zero-once"},
                            {flags.zeroEach, "--zero-each"},
                            {flags.overlapChunks.has_value(), "--overlap-chunks"},
                            {flags.bucketBytes.has_value(), "--bucket-bytes"},
                            {!flags.recompute.empty(), "--recompute"}};
  for (const Choice &choice : choices)
    if (choice.isMade)
      BOWLINE_RETURN_IF_ERROR(checkFlagPhase(options, choice.flag));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// How each line of a strategy is written, for those whose line could not be read.
static constexpr std::pair<StringRef, StringRef> kForms[] = {
    {"mesh", "mesh @mesh [\"dp\", \"tp\"] [2, 4]"},
    {"batch", "batch \"dp\""},
    {"tensor_parallel", "tensor_parallel \"tp\""},
    {"shard", "shard \"model.layers.*.self_attn.o_proj.weight\" as <[{}, {\"tp\"}]>"},
    {"zero", "zero level 3 axis \"dp\" prefetch 2 once"},
    {"sequence_parallel", "sequence_parallel \"tp\""},
    {"microbatches", "microbatches 8"},
    {"stages", "stages \"pp\" split \"[0..5],[6..11]\""},
    {"schedule", "schedule \"1f1b\""},
    {"recompute", "recompute \"selective\""},
    {"bucket_bytes", "bucket_bytes 4194304"},
    {"overlap_chunks", "overlap_chunks 4', or 'overlap_chunks auto"}};

/// MLIR's parser says which token it expects at a place, and nothing about the form of the whole line.
static std::string describeForm(StringRef text, unsigned errorLine, StringRef message) {
  if (message.contains("operation name in quotes") || message.contains("(tried 'builtin."))
    return "a file reads 'dist.strategy @name { mesh @mesh [\"dp\"] [2] }', with a line for each choice";
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  lines.truncate(std::min<size_t>(lines.size(), errorLine));
  // A line that misses its end is noticed at the next one.
  for (StringRef line : llvm::reverse(ArrayRef(lines).take_back(2)))
    for (auto [name, form] : kForms)
      if (line.trim().take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }) == name)
        return absl::StrCat("a line '", name.str(), "' reads '", form.str(), "'");
  return "";
}

/// Parses the operations of a file. An operation's message explains its refusal; a message of the parser gets a note.
static absl::StatusOr<OwningOpRef<ModuleOp>> parseFile(MLIRContext *context, const std::string &path,
                                                       DiagnosticCollector &diagnostics) {
  BOWLINE_RETURN_IF_ERROR(CheckTextFile(path));
  BOWLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  const std::string text(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
  std::string form;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    std::string message = diagnostic.str();
    auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation());
    bool isExplained = StringRef(message).starts_with("'dist.") && !StringRef(message).contains("satisfy constraint");
    if (place && !isExplained && !StringRef(message).contains("is unknown;"))
      form = describeForm(text, place.getLine(), message);
    return failure(); // the collector has the diagnostic
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(context), path);
  if (module)
    return module;
  absl::Status status = diagnostics.status();
  return form.empty() ? status : absl::Status(status.code(), absl::StrCat(status.message(), "\n  note: ", form));
}

/// Puts the strategy at the begin of the module, with the names that flags give: those that a person chose may be those
/// of parameters and functions, and are no part of a plan.
static void placeStrategy(ModuleOp module, dist::StrategyOp strategy) {
  strategy->remove();
  strategy.setSymName("strategy");
  if (dist::MeshOp mesh = strategy.getMesh())
    mesh.setSymName("mesh");
  SymbolTable(module).insert(strategy, module.getBody()->begin());
}

/// Moves the strategy of a file into the module.
static absl::Status moveStrategy(ModuleOp module, const std::string &path, DiagnosticCollector &diagnostics) {
  BOWLINE_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> file, parseFile(module.getContext(), path, diagnostics));
  auto strategies = llvm::to_vector(file->getOps<dist::StrategyOp>());
  if (strategies.size() != 1)
    return absl::InvalidArgumentError(absl::StrCat("--strategy ", path, " has ", strategies.size(),
                                                   " dist.strategy operations; it must have one, as "
                                                   "in dist.strategy @name { mesh @mesh [\"dp\"] [2] }"));
  for (Operation &op : *file->getBody())
    if (!isa<dist::StrategyOp>(op)) {
      op.emitOpError("is outside of the strategy of this file, where nothing reads it; move it in, or remove it");
      return diagnostics.status();
    }
  if (dist::StrategyOp own = dist::StrategyOp::of(module)) {
    own.emitOpError("and --strategy ") << path << " both say how to divide the program; remove one";
    return diagnostics.status();
  }
  placeStrategy(module, strategies.front());
  return absl::OkStatus();
}

/// Writes the text of the table behind its name, which is relative to the file that the line is in.
static LogicalResult readTable(dist::StrategyOp strategy) {
  auto line = strategy.getOnly<dist::ScheduleOp>();
  if (!line || !line.isTable() || line.getTable())
    return success();
  std::filesystem::path path = line.getSchedule().str();
  if (auto place = dyn_cast<FileLineColLoc>(line.getLoc()))
    path = std::filesystem::path(place.getFilename().str()).parent_path() / path;
  auto file = MappedFile::Open(path.string());
  if (!file.ok())
    return emitError(line.getLoc(), "the schedule: ") << std::string(file.status().message());
  auto bytes = file->bytes();
  line.setTable(StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  return success();
}

//===----------------------------------------------------------------------===//
// Lines that contradict the options
//===----------------------------------------------------------------------===//

/// A program that generates text has no steps of training, and no stages yet.
static LogicalResult checkMode(dist::StrategyOp lines, const Strategy &strategy, CompileMode mode) {
  if (trains(mode))
    return success();
  for (Operation &line : lines.getBody().front()) {
    auto zero = dyn_cast<dist::ZeroOp>(line);
    auto recompute = dyn_cast<dist::RecomputeOp>(line);
    if (isa<dist::MicrobatchesOp, dist::ScheduleOp, dist::BucketBytesOp>(line) || (zero && strategy.zeroLevel > 0) ||
        (recompute && recompute.getActivations() != "none"))
      return line.emitOpError("is about steps of training, which --mode ") << nameOf(mode) << " has not; remove it";
  }
  for (const std::string &axis : strategy.batchAxes)
    if (strategy.getSize(axis) > 1)
      return lines.getMesh().emitOpError("has \"")
             << axis << "\" of " << strategy.getSize(axis) << " ranks for the batch, which --mode " << nameOf(mode)
             << " does not divide; give it one rank";
  if (strategy.getSize(strategy.stageAxis) > 1)
    return lines.getMesh().emitOpError("has \"")
           << strategy.stageAxis << "\" for stages of a pipeline, of which --mode " << nameOf(mode)
           << " makes none; give it one rank";
  return success();
}

/// Fails where recomputation is "auto" without a memory limit to choose it for.
static LogicalResult checkRecompute(dist::StrategyOp lines, const CompileOptions &options) {
  auto line = lines.getOnly<dist::RecomputeOp>();
  if (!line || line.getActivations() != "auto" || options.memoryLimit > 0 || options.to < Phase::Fuse ||
      options.from >= Phase::Fuse)
    return success();
  return line.emitOpError("has \"auto\", which needs --memory-limit; give it, or use none, selective or full");
}

absl::Status bowline::addStrategy(ModuleOp module, const CompileOptions &options, DiagnosticCollector &diagnostics) {
  BOWLINE_RETURN_IF_ERROR(checkPhases(options));
  BOWLINE_RETURN_IF_ERROR(checkStrategyRecord(module, options, diagnostics));
  if (!options.strategyFile.empty()) {
    BOWLINE_RETURN_IF_ERROR(moveStrategy(module, options.strategyFile, diagnostics));
  } else if (dist::StrategyOp own = dist::StrategyOp::of(module); own && options.from == Phase::Input) {
    placeStrategy(module, own);
  }
  if (failed(addStrategyFlags(module, options.strategy)))
    return diagnostics.status();
  dist::StrategyOp lines = dist::StrategyOp::of(module);
  if (!lines)
    return absl::OkStatus();
  if (failed(readTable(lines)))
    return diagnostics.status();
  FailureOr<Strategy> strategy = Strategy::fromOp(lines);
  if (failed(strategy) || failed(checkMode(lines, *strategy, options.mode)) || failed(checkRecompute(lines, options)))
    return diagnostics.status();
  return absl::OkStatus();
}
