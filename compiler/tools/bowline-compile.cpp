//===- bowline-compile.cpp - From a model to a plan file
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/Driver/Compile.h"
#include "compiler/Driver/FlagUses.h"
#include "compiler/Driver/LimitAdvice.h"
#include "compiler/Driver/MemoryComparison.h"
#include "compiler/Driver/MemoryReport.h"
#include "compiler/Driver/VerifyModel.h"
#include "frontends/hf/PagedCache.h"
#include "passes/Stages/Schedules/ScheduleChoice.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/cache_directory.h"
#include "runtime/base/output_files.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/tools/tool_support.h"
#include "types/computed_types.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <set>

using namespace bowline;

namespace {

struct CommandLine {
  CompileOptions compile;
  std::string mode = "train", memoryLimit, cacheMemory, bucketBytes, overlapChunks, from = "input", to = "plan",
              kernelCache, kernelListing, output;
  std::vector<std::string> disabled;
  bool report = false;
  std::string verify, verifyEach, remarks;
  bool printsAll = false, printsChanges = false;
};

std::vector<std::string> phaseNames() {
  std::vector<std::string> names;
  for (const PhaseInfo &info : allPhases())
    names.push_back(info.name.str());
  return names;
}

std::vector<std::string> modeNames() {
  std::vector<std::string> names;
  for (CompileMode mode : allModes())
    names.push_back(nameOf(mode).str());
  return names;
}

/// Empty for the name of a phase, else a message about the name.
std::string isPhase(const std::string &name) {
  if (phaseNamed(name))
    return "";
  std::string replacement = replacementOf(name);
  if (!replacement.empty())
    return "phase '" + name + "' is no more; use " + replacement;
  return "'" + name + "' is no phase; use one of " + absl::StrJoin(phaseNames(), ", ");
}

std::string phaseHelp() {
  std::string text = "Phases:";
  for (const PhaseInfo &info : allPhases())
    text += "\n  " + info.name.str() + std::string(10 - info.name.size(), ' ') + info.description.str();
  return text;
}

/// A variable of a script that is not set should not leave out a choice.
std::string isGiven(const std::string &value) {
  return value.empty() ? std::string("is empty; name a value, or leave out the flag") : std::string();
}

/// The library would read a number that is too large as the largest one.
std::string isWholeNumber(const std::string &value) {
  int64_t number = 0;
  return llvm::StringRef(value).getAsInteger(0, number) ? "'" + value + "' is not a whole number of 64 bits" : "";
}

/// Comparisons with the ends of a range let NaN pass, and messages about them print the largest number in full.
std::string isFinite(const std::string &value) {
  double number = 0;
  return absl::SimpleAtod(value, &number) && std::isfinite(number) && number >= 0
             ? ""
             : "'" + value + "' is not a finite number from 0 on";
}

/// The least number that f32 can tell from 0 is asked for later, with the reason.
std::string isPositive(const std::string &value) {
  return isFinite(value).empty() ? "" : "'" + value + "' is not a finite number above 0";
}

/// How a step is computed. Flags without a value leave it to the strategy's file.
void defineStrategy(CLI::App &app, CommandLine &line) {
  StrategyFlags &s = line.compile.strategy;
  app.add_option(
         "--strategy", line.compile.strategyFile,
         "A .mlir file with a dist.strategy, which sets everything that the flags up to --overlap-chunks set, and "
         "more. Flags may add settings that the file lacks")
      ->check(isGiven);
  app.add_option("--mesh", s.mesh,
                 "Ranks by axis, the first outermost: pp stages, dp and fsdp the batch, tp tensors; as "
                 "in pp=2,dp=2,tp=2")
      ->check(isGiven);
  app.add_option("--microbatches", s.microbatches,
                 "Microbatches that a batch is divided into, which run one after another [1]")
      ->check(isWholeNumber);
  app.add_flag("--sequence-parallel", s.sequenceParallel,
               "Shard activations between projections along the sequence, over tp");
  app.add_option("--zero", s.zero,
                 "States that ranks with the same parameters divide: 1 optimizer state, 2 gradients, 3 parameters [0]")
      ->check(CLI::Range(0, 3));
  app.add_option("--zero-axis", s.zeroAxis, "Axis of --zero; default: that of the batch")->check(isGiven);
  app.add_option("--prefetch", s.prefetch,
                 "With --zero 3: gathers of parameters that may be under way ahead of use [1]")
      ->check(isWholeNumber)
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--zero-once", s.zeroOnce,
               "With --zero 3: gather parameters and reduce gradients once for all microbatches that a pass takes in a "
               "row, and keep them meanwhile; the default of --schedule gpipe and breadth_first");
  app.add_flag("--zero-each", s.zeroEach,
               "With --zero 3: gather parameters and reduce gradients for each microbatch; the default otherwise");
  app.add_option("--schedule", s.schedule, "Order of the stages' work: " + std::string(kScheduleSyntax) + " [1f1b]")
      ->check(isGiven);
  app.add_option("--stages", s.stages, "Layers of each stage, as in [0..3],[4..9],[10] [balanced]")->check(isGiven);
  app.add_option("--recompute", s.recompute,
                 "Activations that the backward pass computes again instead of keeping them: none; selective, cheap "
                 "ones; full, all but those between layers; auto, as little as --memory-limit allows [none]")
      ->check(CLI::IsMember({"none", "selective", "full", "auto"}));
  app.add_option("--bucket-bytes", line.bucketBytes,
                 "Most that one exchange of gradients or parameters has, for instance 4MiB; 0: each tensor alone "
                 "[25MiB]")
      ->check(isGiven);
  app.add_option("--overlap-chunks", line.overlapChunks,
                 "Chunks of matrix products beside whose exchanges the next one is computed: a number, or auto [1]")
      ->check(isGiven);
}

/// A flag for each kind of levels that targets have, which may share one.
void defineLevels(CLI::App &app, CompileOptions &options) {
  std::set<std::string> flags;
  for (const targets::Target *target : targets::AllTargets()) {
    const targets::Levels &levels = target->levels;
    std::string flag(levels.flag), initial(levels.initial);
    if (!flags.insert(flag).second)
      continue;
    std::vector<std::string> names(levels.names.begin(), levels.names.end());
    if (!llvm::is_contained(names, initial))
      names.insert(names.begin(), initial);
    app.add_option_function<std::string>(
           "--" + flag, [&options, flag](const std::string &level) { options.levels[flag] = level; },
           std::string(levels.help) + " [" + initial + "]")
        ->check(CLI::IsMember(names));
  }
}

void define(CLI::App &app, CommandLine &line) {
  CompileOptions &o = line.compile;
  app.add_option("MODEL", o.model, "A Hugging Face directory, a .gguf file, or a .mlir file in the graph dialect")
      ->required();
  app.add_option("-o,--output", line.output, "The plan file; or, with --compile-to, the IR ('-': standard output)");
  app.add_option("--mode", line.mode, "Purpose of the plan")->check(CLI::IsMember(modeNames()))->capture_default_str();
  app.add_option("--batch", o.batch, "Sequences per step, over all microbatches")->check(isWholeNumber);
  app.add_option("--seq", o.seq, "Positions per sequence")->check(isWholeNumber);
  app.add_option(
         "--dtype", o.dtype,
         "Type of the computation; types of 16 bits accumulate in f32, and keep statistics and trained tensors in f32; "
         "--mode train takes " +
             NamesOf(&IsTrainedIn))
      ->check(CLI::IsMember(std::vector<std::string>(absl::StrSplit(NamesOf(&IsComputedIn), ", "))))
      ->capture_default_str();
  app.add_option(
         "--buckets", o.buckets,
         "Tokens of the steps, ascending: a step takes the least that holds its tokens [powers of two up to 512]")
      ->delimiter(',');
  app.add_option("--max-batch", o.maxBatch, "Sequences of a step, at most")
      ->check(isWholeNumber)
      ->capture_default_str();
  app.add_option("--max-context", o.maxContext,
                 "Tokens of a sequence, at most: prompt and continuation together [the model's, at most " +
                     std::to_string(kDefaultContext) + "]")
      ->check(isWholeNumber);
  app.add_option("--block-tokens", o.blockTokens, "Tokens of a block of the cache")
      ->check(isWholeNumber)
      ->capture_default_str();
  app.add_option(
         "--kv-blocks", o.cacheBlocks,
         "Blocks of the cache of keys and values [as --max-batch contexts need, within the rest of --memory-limit, "
         "or 1 GiB]")
      ->check(isWholeNumber);
  app.add_option(
         "--kv-memory", line.cacheMemory,
         "Bytes of the cache instead of blocks, for instance 2GiB; it takes less where --max-batch contexts need "
         "less, and one context at least")
      ->check(isGiven)
      ->excludes("--kv-blocks");
  app.add_option("--kv-dtype", o.cacheType, "Elements of the cache of keys and values")
      ->check(CLI::IsMember(std::vector<std::string>(absl::StrSplit(hf::cacheTypeNames(), ", "))))
      ->capture_default_str();
  app.add_flag("--with-logits", o.withLogits, "Steps give the logits too that tokens are drawn from");
  app.add_option(
         "--weights-dtype", o.weightsType,
         "as-stored: matrices that a GGUF file has in blocks of bits stay so, and others have the type of --dtype")
      ->check(CLI::IsMember({"as-stored", "f32", "bf16", "f16"}))
      ->capture_default_str();
  defineStrategy(app, line);
  app.add_option("--optimizer", o.optimizer, "adamw or sgd")
      ->check(CLI::IsMember({"adamw", "sgd"}))
      ->capture_default_str();
  app.add_option("--lr", o.lr, "Learning rate after warmup")->check(isFinite)->capture_default_str();
  app.add_option("--beta1", o.beta1, "AdamW: decay of the first moment")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--beta2", o.beta2, "AdamW: decay of the second moment")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--eps", o.eps, "AdamW: added to the root of the second moment")
      ->check(isPositive)
      ->capture_default_str();
  app.add_option("--weight-decay", o.weightDecay, "AdamW: decoupled, on parameters of rank two or more")
      ->check(isFinite)
      ->capture_default_str();
  app.add_option("--clip-norm", o.clipNorm, "Largest global gradient norm; 0: no clipping")
      ->check(isFinite)
      ->capture_default_str();
  app.add_option("--lr-schedule", o.lrSchedule, "constant or cosine")
      ->check(CLI::IsMember({"constant", "cosine"}))
      ->capture_default_str();
  app.add_option("--warmup-steps", o.warmupSteps, "Steps of linear warmup")
      ->check(isWholeNumber)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--decay-steps", o.decaySteps, "cosine: the step at which --min-lr is reached")
      ->check(isWholeNumber)
      ->check(CLI::NonNegativeNumber);
  app.add_option("--min-lr", o.minLr, "cosine: learning rate at the end")->check(isFinite)->capture_default_str();
  app.add_option("--seed", o.seed, "Seed of initial values and data order")
      ->check(isWholeNumber)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  std::vector<std::string> targets;
  for (const targets::Target *target : targets::AllTargets())
    targets.emplace_back(target->name);
  app.add_option("--target", o.target,
                 "The device that runs the plan: " + absl::StrJoin(targets, " or ") + " [" +
                     std::string(targets::DefaultTarget().name) + "; with --compile-from as before]")
      ->check(CLI::IsMember(targets));
  defineLevels(app, o);
  app.add_flag("!--no-codegen", o.codegen,
               "Make a plan to check and to simulate, without machine code: it cannot be run");
  app.add_option("--kernel-cache", line.kernelCache,
                 "Folder of compiled kernels, or off [$BOWLINE_CACHE_DIR, else $XDG_CACHE_HOME/bowline, else "
                 "~/.cache/bowline]");
  app.add_option(
         "--kernel-listing", line.kernelListing,
         "Write the IR of each generated kernel after each stage to this file, and the output of the target's own "
         "tools about it")
      ->check(isGiven);
  app.add_option(
         "--threads", o.threads,
         "Threads per rank; 0: the processors of this machine, divided among the ranks; with --compile-from as before")
      ->check(isWholeNumber)
      ->capture_default_str();
  app.add_option("--f32-products", o.f32Products,
                 "How f32 is multiplied; bf16x6: on processors with AMX, by six products of bf16, which is faster and "
                 "mostly more exact, but not for numbers below 2^-102")
      ->check(CLI::IsMember(std::vector<std::string>{"f32", "bf16x6"}))
      ->capture_default_str();
  app.add_option("--link", o.links,
                 "The link along an axis, or along all, for which communication is ordered and divided, as bowline run "
                 "emulates it: [AXIS:]bandwidth=10GB/s,latency=5us [bandwidth=1GB/s,latency=20us]")
      ->allow_extra_args(false);
  app.add_option("--runs-in-flight", o.runsInFlight,
                 "1, or 2: the host writes the data of a step while the device computes the one before, for which the "
                 "plan has its ports twice [1]")
      ->check(CLI::Range(1, 2));
  app.add_option(
      "--memory-limit", line.memoryLimit,
      "Refuse a plan whose arena on the device is larger, for instance 2GiB; weights that --map-weights leaves "
      "in their files are not in it");
  app.add_flag(
      "--map-weights", o.mapsWeights,
      "Read weights in place from the files that bowline run maps, instead of copying them into the arena, and "
      "make no packed copies of them");
  app.add_flag(
      "--report", line.report,
      "Print the plan's parameters, work, kernels and memory; of training also the memory by formulas, and the "
      "choices that do not pay");
  app.add_flag("--timing", o.timing, "Print how long each pass took");
  app.add_flag(
      "--remarks{.*}", line.remarks,
      "Print the remarks of passes on their decisions, with the place in the model; --remarks=REGEX: those whose kind, "
      "category and name, such as 'passed fusion/GroupFusions', have a match");
  CLI::Option *all =
      app.add_flag("--mlir-print-ir-after-all", line.printsAll, "Print the program after each pass to stderr");
  app.add_flag("--mlir-print-ir-after-change", line.printsChanges,
               "Print the program after each pass that changed it to stderr")
      ->excludes(all);
  app.add_option("--verify", line.verify,
                 "placement: derive, at full size, which part of which value of the whole program each value of each "
                 "rank is, and refuse the first one that is none; see docs/checker.md")
      ->check(CLI::IsMember({"placement"}));
  app.add_option(
         "--verify-each", line.verifyEach,
         "equiv: compile a second time, with small sizes and the same structure, and compare the results of the "
         "program before and after each step up to the choice of kernels, on all ranks, in f64 and modulo a "
         "prime; see docs/checker.md")
      ->check(CLI::IsMember({"equiv"}));
  const std::string phases = "{" + absl::StrJoin(phaseNames(), ",") + "}";
  app.add_option("--compile-to", line.to, "Stop after this phase and print the IR")->check(isPhase, phases);
  app.add_option("--compile-from", line.from, "MODEL is a .mlir file that was printed after this phase")
      ->check(isPhase, phases);
  app.add_option("--disable-step", line.disabled, "Leave out an optimisation, for instance merge-fusions");
  app.footer(phaseHelp());
  for (const FlagUse &use : flagUses()) {
    CLI::Option *option = app.get_option(use.flag.str());
    if (use.mode)
      option->description(option->get_description() + " (" + nameOf(*use.mode).str() + ")");
  }
}

absl::Status writeText(const std::string &text, const std::string &output) {
  if (output.empty() || output == "-")
    return PrintToStdout(text);
  BOWLINE_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(output));
  BOWLINE_RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

/// Prints the contents of the plan and, of a model's training, how they compare with formulas.
absl::Status report(CompileResult &result, const CompileOptions &options) {
  std::string text = describePlan(*result.plan, result.liveBytes, result.unfusedBytes);
  if (result.memoryInputs.ok()) {
    BOWLINE_ASSIGN_OR_RETURN(const MemoryComparison comparison,
                             compareWithFormulas(*result.plan, *result.memoryInputs, options.links));
    text += comparison.table;
    for (const std::string &note : comparison.notes)
      std::fprintf(stderr, "bowline-compile: note: %s\n", note.c_str());
  } else if (trains(options.mode)) {
    absl::StrAppend(&text, "memory of a step: no formula of docs/memory.md is for ",
                    result.memoryInputs.status().message(), "\n");
  }
  return PrintToStdout(text);
}

absl::Status run(CommandLine &line, const CLI::App &app) {
  CompileOptions &options = line.compile;
  options.mode = *modeNamed(line.mode);
  options.from = *phaseNamed(line.from);
  options.to = *phaseNamed(line.to);
  BOWLINE_RETURN_IF_ERROR(checkFlagUses(options, [&](llvm::StringRef flag) { return app.count(flag.str()) > 0; }));
  options.kernelCache = line.kernelCache.empty()    ? DefaultCacheDirectory()
                        : line.kernelCache == "off" ? ""
                                                    : line.kernelCache;
  options.listsKernels = !line.kernelListing.empty();
  if (options.listsKernels && (!options.codegen || options.to < Phase::Codegen))
    return absl::InvalidArgumentError(
        absl::StrCat("--kernel-listing has nothing to list: ",
                     options.codegen ? "no code is generated before the phase codegen; leave out --compile-to"
                                     : "leave out --no-codegen"));
  BOWLINE_RETURN_IF_ERROR(CheckOutputs({{"MODEL", options.model}, {"--strategy", options.strategyFile}},
                                       {{"-o", line.output}, {"--kernel-listing", line.kernelListing}}));
  if (!line.remarks.empty())
    options.passRemarks = line.remarks;
  if (line.printsAll || line.printsChanges)
    options.irPrinting = line.printsAll ? IrPrinting::AfterAll : IrPrinting::AfterChange;
  options.verifiesPlacement = !line.verify.empty();
  options.disabledSteps = {line.disabled.begin(), line.disabled.end()};
  if (!line.memoryLimit.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(options.memoryLimit, parseBytes(line.memoryLimit));
  }
  if (!line.cacheMemory.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(options.cacheBytes, parseBytes(line.cacheMemory));
  }
  if (line.bucketBytes == "0")
    options.strategy.bucketBytes = 0; // no amount, but a choice
  else if (!line.bucketBytes.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(uint64_t bytes, parseBytes(line.bucketBytes));
    options.strategy.bucketBytes = static_cast<int64_t>(std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max()));
  }
  if (!line.overlapChunks.empty()) {
    int64_t chunks = 0;
    if (line.overlapChunks != "auto" && (llvm::StringRef(line.overlapChunks).getAsInteger(10, chunks) || chunks < 1))
      return absl::InvalidArgumentError("--overlap-chunks '" + line.overlapChunks +
                                        "' is neither auto nor a number from 1 on; the nearest valid one is 1");
    options.strategy.overlapChunks = chunks;
  }
  if (options.to == Phase::Plan && line.output.empty())
    return absl::InvalidArgumentError("-o is missing: name the plan file to write");
  if (options.to == Phase::Plan && line.output == "-")
    return absl::InvalidArgumentError("-o -: a plan is not written to the standard output; name a file");

  BOWLINE_ASSIGN_OR_RETURN(CompileResult result, compileModel(options));
  for (const std::string &remark : result.remarks)
    std::fprintf(stderr, "bowline-compile: %s%s\n",
                 absl::StartsWith(remark, "warning: ") ? "" : "note: ", remark.c_str());
  for (const std::string &remark : result.passRemarks)
    std::fprintf(stderr, "bowline-compile: remark: %s\n", remark.c_str());
  if (options.passRemarks && result.passRemarks.empty())
    std::fprintf(stderr, "bowline-compile: note: no pass said anything that --remarks=%s matches\n",
                 line.remarks.c_str());
  if (!line.verifyEach.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(const std::string verified, verifyModel(options));
    std::fprintf(stderr, "bowline-compile: note: %s\n", verified.c_str());
  }
  auto writeListing = [&] {
    return options.listsKernels ? writeText(result.kernelListing, line.kernelListing) : absl::OkStatus();
  };
  if (!result.plan) {
    BOWLINE_RETURN_IF_ERROR(writeListing());
    return writeText(result.ir, line.output);
  }
  if (options.memoryLimit > 0 && result.plan->arena_bytes > options.memoryLimit)
    return absl::InvalidArgumentError(absl::StrCat(
        options.model, ": the plan needs ",
        describeExcess(result.plan->arena_bytes, options.memoryLimit, line.memoryLimit),
        adviseOnLimit(options, result, line.memoryLimit), "\n", describeMemory(*result.plan, result.liveBytes, 12)));
  BOWLINE_RETURN_IF_ERROR(writeListing());
  BOWLINE_RETURN_IF_ERROR(WritePlanFile(*result.plan, line.output));
  return line.report ? report(result, options) : absl::OkStatus();
}

} // namespace

int main(int argc, char **argv) {
  PrepareSignals("bowline-compile");
  CLI::App app("Compiles a model and a strategy into a plan");
  CommandLine line;
  define(app, line);
  int exitCode = 0;
  if (!ParseCommandLine(app, argc, argv, &exitCode))
    return exitCode;
  return ReportStatus("bowline-compile", run(line, app));
}
