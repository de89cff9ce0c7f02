//===- Compile.cpp - From a model to a plan
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Compile.h"
#include "absl/strings/str_join.h"
#include "checker/PlanChecker.h"
#include "compiler/Driver/CompileSetup.h"
#include "compiler/Driver/MemoryInputs.h"
#include "compiler/Driver/MemoryLimit.h"
#include "compiler/Driver/PassRemarks.h"
#include "compiler/Driver/Recipe.h"
#include "compiler/Driver/StepSizes.h"
#include "compiler/Driver/StrategyRecord.h"
#include "compiler/Emit/EmitPlan.h"
#include "compiler/Support/Registration.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "frontends/hf/Import.h"
#include "frontends/hf/Parameters.h"
#include "frontends/hf/Weights.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/Fusion/Groups/Traffic.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/text_file.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/attachments.h"
#include "targets/costs/link.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sched.h>

using namespace mlir;
using namespace bowline;

//===----------------------------------------------------------------------===//
// Modes
//===----------------------------------------------------------------------===//

llvm::ArrayRef<CompileMode> bowline::allModes() {
  static constexpr CompileMode kModes[] = {CompileMode::Train, CompileMode::Generate, CompileMode::Serve};
  return kModes;
}

StringRef bowline::nameOf(CompileMode mode) {
  switch (mode) {
  case CompileMode::Train:
    return "train";
  case CompileMode::Generate:
    return "generate";
  case CompileMode::Serve:
    return "serve";
  }
  llvm_unreachable("modes are those of the list");
}

std::optional<CompileMode> bowline::modeNamed(StringRef name) {
  for (CompileMode mode : allModes())
    if (nameOf(mode) == name)
      return mode;
  return std::nullopt;
}

bool bowline::trains(CompileMode mode) {
  switch (mode) {
  case CompileMode::Train:
    return true;
  case CompileMode::Generate:
  case CompileMode::Serve:
    return false;
  }
  llvm_unreachable("modes are those of the list");
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static constexpr const char *kCompiler = "bowline 0.1.0";

/// Processors that this process may run on.
static int64_t availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return 1;
  return CPU_COUNT(&set);
}

/// Reads the strategy of a module, which addStrategy has read once without errors.
static absl::StatusOr<Strategy> readStrategy(ModuleOp module) {
  dist::StrategyOp lines = dist::StrategyOp::of(module);
  if (!lines)
    return Strategy();
  FailureOr<Strategy> strategy = Strategy::fromOp(lines);
  if (failed(strategy))
    return absl::InternalError("a strategy that was right is wrong when it is read again");
  return std::move(*strategy);
}

/// Checks the sizes of a step against each other and the strategy, before anything that takes time. \p batch is 0 where
/// the program has its own.
static absl::Status checkSizes(ModuleOp module, const CompileOptions &options, int64_t batch) {
  if (!trains(options.mode) || options.from >= Phase::Local)
    return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(Strategy strategy, readStrategy(module));
  const StepFlags flags{.areMicrobatchesInFile = strategy.microbatches.has_value() && !options.strategy.microbatches,
                        .isScheduleInFile = strategy.schedule.has_value() && options.strategy.schedule.empty()};
  const StepSizes sizes{batch, strategy.microbatches.value_or(1), batch == 0 ? 0 : options.seq};
  StepSizeRules rules(std::move(strategy));
  if (options.memoryLimit > 0 && batch > 0 && !flags.areMicrobatchesInFile)
    rules.adviseOnly([&](const StepSizes &advised, StringRef schedule) {
      CompileOptions tried = options;
      if (!schedule.empty())
        tried.strategy.schedule = schedule.str();
      tried.batch = advised.batch;
      tried.strategy.microbatches = advised.microbatches;
      const std::optional<uint64_t> bytes = arenaBytesWith(tried);
      return bytes && *bytes <= tried.memoryLimit;
    });
  return rules.check(sizes, flags);
}

/// Checks the length of the sequences of a step against the model.
static absl::Status checkLength(const CompileOptions &options, const Strategy &strategy) {
  BOWLINE_ASSIGN_OR_RETURN(const hf::ModelConfig config, hf::readConfig(options.model));
  return StepSizeRules(strategy, config.maxPositions, config.positionsSource)
      .checkSequence({options.batch, strategy.microbatches.value_or(1), options.seq}, /*isStep=*/true);
}

PipelineOptions bowline::makePipelineOptions(const CompileOptions &options, const ChosenTarget &chosen) {
  PipelineOptions result;
  result.training = trains(options.mode);
  result.seed = options.seed;
  result.threads = options.threads;
  result.target = chosen.target;
  result.codegen = chosen.codegen;
  result.dtype = options.dtype;
  result.links = absl::StrJoin(options.links, ";");
  result.memoryLimit = static_cast<int64_t>(options.memoryLimit);
  result.splitsF32 = options.f32Products == "bf16x6";
  result.mapsWeights = options.mapsWeights;
  result.disabledSteps = options.disabledSteps;
  result.timing = options.timing;
  result.irPrinting = options.irPrinting;
  if (options.verifiesPlacement)
    result.placement = std::make_shared<PlacementRecord>();
  InsertOptimizerOptions &optimizer = result.optimizer;
  optimizer.kind = options.optimizer;
  optimizer.lr = options.lr;
  optimizer.beta1 = options.beta1;
  optimizer.beta2 = options.beta2;
  optimizer.eps = options.eps;
  optimizer.weightDecay = options.weightDecay;
  optimizer.clipNorm = options.clipNorm;
  optimizer.schedule = options.lrSchedule;
  optimizer.warmupSteps = options.warmupSteps;
  optimizer.decaySteps = options.decaySteps;
  optimizer.minLr = options.minLr;
  return result;
}

/// The graph of a Hugging Face directory or a GGUF file on one of so many microbatches, named after the directory, with
/// its config.json attached.
static absl::StatusOr<OwningOpRef<ModuleOp>> importDirectory(MLIRContext &context, const CompileOptions &options,
                                                             const Strategy &strategy,
                                                             std::vector<std::string> &remarks) {
  const int64_t microbatches = strategy.microbatches.value_or(1);
  BOWLINE_ASSIGN_OR_RETURN(hf::ModelConfig config, hf::readConfig(options.model));
  if (options.mode != CompileMode::Serve)
    BOWLINE_RETURN_IF_ERROR(StepSizeRules(strategy, config.maxPositions, config.positionsSource)
                                .checkSequence({trains(options.mode) ? options.batch : 1, microbatches, options.seq},
                                               trains(options.mode)));
  remarks.insert(remarks.end(), config.remarks.begin(), config.remarks.end());
  BOWLINE_RETURN_IF_ERROR(hf::checkWeights(config, options.model, &remarks).status());
  hf::ImportOptions import;
  switch (options.mode) {
  case CompileMode::Train:
    import.mode = hf::ImportMode::Train;
    import.batch = options.batch / microbatches;
    break;
  case CompileMode::Generate:
    import.mode = hf::ImportMode::Generate;
    import.batch = 1;
    break;
  case CompileMode::Serve:
    import.mode = hf::ImportMode::Serve;
    import.serve = serveSizesOf(options, config, remarks);
    if (options.weightsType == "as-stored" && IsGgufPath(options.model)) {
      BOWLINE_ASSIGN_OR_RETURN(import.blocks, storedBlocksOf(options.model));
    }
    break;
  }
  import.seq = options.seq;
  BOWLINE_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, hf::importModel(context, config, import));

  std::filesystem::path directory = std::filesystem::weakly_canonical(options.model);
  module->setSymName(directory.filename().string());
  std::string text;
  if (IsGgufPath(options.model)) {
    BOWLINE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(options.model));
    text = model.config().dump(2);
  } else {
    std::string path = (std::filesystem::path(options.model) / "config.json").string();
    BOWLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
    text.assign(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
  }
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  plan::AttachmentOp::create(builder, builder.getUnknownLoc(), kConfigAttachment, StringRef(text));
  nlohmann::json keys = nlohmann::json::object();
  for (const auto &[key, meaning] : config.functionKeys) {
    keys[key] = {{"null", meaning.nullIsValue}};
    if (meaning.absent)
      keys[key]["absent"] = *meaning.absent;
  }
  plan::AttachmentOp::create(builder, builder.getUnknownLoc(), kFunctionKeysAttachment, keys.dump());
  plan::AttachmentOp::create(builder, builder.getUnknownLoc(), kIgnoredTensorsAttachment,
                             nlohmann::json(hf::ignoredTensors(config)).dump());
  return module;
}

/// Compilation goes on without a cache that cannot be used; the user gets to know why.
static void openKernelCache(const CompileOptions &options, CodegenOptions &codegen, std::vector<std::string> &remarks) {
  if (options.kernelCache.empty())
    return;
  auto cache = KernelCache::open(options.kernelCache);
  if (cache.ok())
    codegen.cache = std::move(*cache);
  else
    remarks.push_back(absl::StrCat("kernels are not kept for the next compilation: ", cache.status().message(),
                                   "; name another folder with --kernel-cache, or off"));
}

/// Only optimisations may be left out, and a name that is none is a mistake of the caller.
static absl::Status checkDisabledSteps(const PipelineOptions &pipeline, const CompileOptions &options) {
  std::vector<std::string> names;
  for (const Step &step : pipelineSteps(pipeline)) {
    if (step.optional)
      names.push_back(step.name.str());
    if (step.optional && step.phase <= options.from && pipeline.disabledSteps.contains(step.name.str()))
      return absl::InvalidArgumentError(absl::StrCat(
          "--disable-step ", step.name.str(), ": the program of ", options.model, " is past phase '",
          nameOf(step.phase).str(), "', in which that step runs; leave it out, or compile from an earlier phase"));
  }
  for (const std::string &disabled : pipeline.disabledSteps)
    if (!llvm::is_contained(names, disabled))
      return absl::InvalidArgumentError(absl::StrCat(
          "--disable-step ", disabled, " is no step that may be left out; use one of ", absl::StrJoin(names, ", ")));
  return absl::OkStatus();
}

/// The mesh of the strategy, or of a program that is sharded already; null for one rank.
static dist::MeshOp findMesh(ModuleOp module) {
  dist::StrategyOp strategy = dist::StrategyOp::of(module);
  return strategy ? strategy.getMesh() : dist::MeshOp::of(module);
}

static int64_t countRanks(ModuleOp module) {
  dist::MeshOp mesh = findMesh(module);
  return mesh ? mesh.getRankCount() : 1;
}

/// Checks the texts of links, before anything that takes time.
static absl::Status checkLinks(ModuleOp module, const CompileOptions &options) {
  std::vector<std::string> axes;
  if (dist::MeshOp mesh = findMesh(module))
    for (auto name : mesh.getAxisNames().getAsRange<StringAttr>())
      axes.push_back(name.str());
  BOWLINE_RETURN_IF_ERROR(targets::ParseLinks(options.links, axes).status());
  if (!options.links.empty() && countRanks(module) == 1)
    return absl::InvalidArgumentError("--link is about several ranks, and there is one; leave it out, or add --mesh");
  return absl::OkStatus();
}

/// Checks that a file that was printed after a phase goes on from there. Records the phase in one that does not say it.
static absl::Status checkPhase(ModuleOp module, const CompileOptions &options) {
  if (module->hasAttr(kPhaseAttr) && !phaseOf(module))
    return absl::InvalidArgumentError(absl::StrCat(options.model, ": '", kPhaseAttr.str(),
                                                   "' is the name of no phase; leave the attribute out, or print the "
                                                   "program again with --compile-to"));
  std::optional<Phase> ended = phaseOf(module);
  if (ended && *ended != options.from)
    return absl::InvalidArgumentError(absl::StrCat(
        options.model, " says that it was printed after phase '", nameOf(*ended).str(), "'; ",
        options.from == Phase::Input ? "add" : "use", " --compile-from=", nameOf(*ended).str(),
        options.from == Phase::Input ? "" : absl::StrCat(" instead of --compile-from=", nameOf(options.from).str())));
  if (options.from != Phase::Input)
    setPhase(module, options.from);
  return absl::OkStatus();
}

void bowline::describeTarget(ModuleOp module, const CompileOptions &options, const PipelineOptions &pipeline) {
  Builder builder(module.getContext());
  module->setAttr(plan::PlanDialect::kCompilerAttr, builder.getStringAttr(kCompiler));
  module->setAttr(plan::PlanDialect::kSeedAttr, builder.getI64IntegerAttr(options.seed));
  const targets::Target &target = *pipeline.target;
  module->setAttr(plan::PlanDialect::kTargetAttr,
                  plan::TargetAttr::get(module.getContext(), target.name, target.arch, pipeline.codegen.level,
                                        target.has_host_threads ? pipeline.threads : 1));
}

/// Adds the certificate that the loader checks. Fails if the plan is unsound, as after a hand edit of an earlier phase.
static absl::Status prove(fbs::PlanT &plan, const CompileOptions &options) {
  absl::Status status = CertifyPlan(plan);
  if (status.code() != absl::StatusCode::kAborted)
    return status;
  if (options.from != Phase::Input)
    return absl::InvalidArgumentError(
        absl::StrCat(options.model, ": the plan that is compiled from this program fails a proof: ", status.message(),
                     "; where the program was changed after phase '", nameOf(options.from).str(),
                     "' had printed it, correct that, and where it was not, please report it"));
  return absl::InternalError(
      absl::StrCat("the compiled plan fails a proof, which is a fault of the compiler and not of "
                   "the model or the strategy; please report it: ",
                   status.message()));
}

/// Collects the remarks of passes on each role for reports.
static void describeRoles(ModuleOp module, CompileResult &result) {
  for (auto role : module.getOps<ModuleOp>()) {
    if (auto live = role->getAttrOfType<IntegerAttr>(plan::PlanDialect::kLiveBytesAttr))
      result.liveBytes.push_back(live.getInt());
    std::map<std::string, double> &unfused = result.unfusedBytes.emplace_back();
    if (auto entries = role->getAttrOfType<DictionaryAttr>(kUnfusedBytesAttr))
      for (NamedAttribute entry : entries)
        unfused[entry.getName().str()] = cast<FloatAttr>(entry.getValue()).getValueAsDouble();
  }
}

/// A sentence about the findings of `--verify=placement`.
static std::string describePlacement(const PlacementChecker::Summary &summary) {
  return absl::StrCat("placement: at full size each of ", summary.values, " values of ", summary.roles,
                      summary.roles == 1 ? " role" : " roles", " is a part of the whole program; so are the ",
                      summary.written, " that variables get, and the ", summary.results, " results");
}

/// Compiles a module that has its strategy.
static absl::StatusOr<CompileResult> compileWithStrategy(ModuleOp module, const CompileOptions &options) {
  BOWLINE_ASSIGN_OR_RETURN(ChosenTarget chosen, chooseTarget(options, module));
  CompileResult result;
  chosen.codegen.hasCode = options.codegen;
  llvm::raw_string_ostream listing(result.kernelListing);
  if (options.listsKernels)
    chosen.codegen.dump = &listing; // and nothing comes from the cache
  else if (options.to >= Phase::Codegen && options.codegen)
    openKernelCache(options, chosen.codegen, result.remarks);
  DiagnosticCollector diagnostics(module.getContext());
  PipelineOptions pipeline = makePipelineOptions(options, chosen);
  if (chosen.threads > 0)
    pipeline.threads = chosen.threads;
  if (auto seed = module->getAttrOfType<IntegerAttr>(plan::PlanDialect::kSeedAttr);
      seed && options.from != Phase::Input)
    pipeline.seed = seed.getInt();
  BOWLINE_RETURN_IF_ERROR(checkSizes(module, options, /*batch=*/0));
  BOWLINE_RETURN_IF_ERROR(checkLinks(module, options));
  if (options.mode == CompileMode::Train && options.lr == 0)
    result.remarks.push_back("--lr 0: no step changes a parameter");
  if (int64_t processors = availableProcessors(); options.threads > processors && pipeline.target->has_host_threads)
    result.remarks.push_back(absl::StrCat("--threads ", options.threads, ": this machine has ", processors,
                                          " processors for them, on which the plan runs slower than with as many "
                                          "threads"));
  if (pipeline.threads == 0)
    pipeline.threads = std::max<int64_t>(1, availableProcessors() / countRanks(module));
  BOWLINE_RETURN_IF_ERROR(checkDisabledSteps(pipeline, options));
  if (options.from == Phase::Input)
    describeTarget(module, options, pipeline);
  if (trains(options.mode) && options.from < Phase::Train)
    attachRecipe(module, options);
  BOWLINE_ASSIGN_OR_RETURN(const Strategy strategy, readStrategy(module));
  result.recompute = dist::recomputeOf(module);
  std::unique_ptr<PassRemarks> remarks;
  if (options.passRemarks) {
    BOWLINE_ASSIGN_OR_RETURN(remarks, PassRemarks::collect(*module.getContext(), *options.passRemarks));
  }
  const std::shared_ptr<PlacementRecord> placement = pipeline.placement;
  BOWLINE_RETURN_IF_ERROR(runWithinMemory(module, options, std::move(pipeline), diagnostics, result));
  if (placement && placement->summary)
    result.remarks.push_back(describePlacement(*placement->summary));
  if (remarks)
    result.passRemarks = remarks->take();
  if (options.to == Phase::Plan) {
    BOWLINE_RETURN_IF_ERROR(prove(*result.plan, options));
    describeRoles(module, result);
    return result;
  }
  recordStrategy(module);
  llvm::raw_string_ostream stream(result.ir);
  module->print(stream, OpPrintingFlags().enableDebugInfo());
  return result;
}

absl::StatusOr<CompileResult> bowline::compileModule(ModuleOp module, const CompileOptions &options) {
  BOWLINE_RETURN_IF_ERROR(checkOptions(options, /*isIr=*/true));
  BOWLINE_RETURN_IF_ERROR(checkPhase(module, options));
  {
    DiagnosticCollector diagnostics(module.getContext());
    BOWLINE_RETURN_IF_ERROR(addStrategy(module, options, diagnostics));
  }
  return compileWithStrategy(module, options);
}

/// \p refused is about the sizes of a step. A strategy that does not fit the model at any sizes is a mistake that comes
/// first: advice about sizes would be refused because of it.
static absl::Status checkStrategyFirst(const absl::Status &refused, const CompileOptions &options,
                                       const Strategy &strategy) {
  BOWLINE_ASSIGN_OR_RETURN(const hf::ModelConfig config, hf::readConfig(options.model));
  const StepSizeRules rules(strategy, config.maxPositions, config.positionsSource);
  const absl::Status length =
      rules.checkSequence({options.batch, strategy.microbatches.value_or(1), options.seq}, /*isStep=*/true);
  const int64_t seq = length.ok() ? options.seq : rules.longestBelow(options.seq);
  const std::optional<StepSizes> least = rules.least(seq);
  const bool areMicrobatchesInFile = strategy.microbatches && !options.strategy.microbatches;
  const absl::Status &mistake = length.ok() ? refused : length;
  if (!least || seq < 1 || (areMicrobatchesInFile && least->microbatches != *strategy.microbatches))
    return mistake;
  CompileOptions tried = options;
  tried.batch = least->batch;
  tried.seq = seq;
  if (!areMicrobatchesInFile && (least->microbatches > 1 || options.strategy.microbatches))
    tried.strategy.microbatches = least->microbatches;
  tried.to = std::min(options.to, Phase::Local);
  tried.timing = false;
  tried.irPrinting = IrPrinting::None;
  tried.verifiesPlacement = false;
  absl::Status status = compileModel(tried).status();
  if (status.ok())
    return mistake;
  // The sizes may be wrong for the strategy that the message advises, too.
  const absl::Status sizes = rules.checkBesideSchedule({options.batch, strategy.microbatches.value_or(1), options.seq});
  if (sizes.ok())
    return status;
  Strategy any = strategy; // whose number of stages the message changes
  any.schedule.reset();
  const absl::Status advised = !length.ok()
                                   ? length
                                   : StepSizeRules(any, config.maxPositions, config.positionsSource)
                                         .check({options.batch, strategy.microbatches.value_or(1), options.seq});
  return absl::Status(
      status.code(), absl::StrCat(status.message(), "; and then ", advised.ok() ? sizes.message() : advised.message()));
}

/// A Hugging Face directory. The strategy comes first: it says how many sequences a microbatch has.
static absl::StatusOr<CompileResult> compileDirectory(MLIRContext &context, const CompileOptions &options) {
  OwningOpRef<ModuleOp> given = ModuleOp::create(UnknownLoc::get(&context));
  {
    DiagnosticCollector diagnostics(&context);
    BOWLINE_RETURN_IF_ERROR(addStrategy(*given, options, diagnostics));
  }
  BOWLINE_ASSIGN_OR_RETURN(const Strategy strategy, readStrategy(*given));
  absl::Status sizes = checkSizes(*given, options, options.batch);
  if (sizes.ok() && trains(options.mode))
    sizes = checkLength(options, strategy);
  if (!sizes.ok())
    return checkStrategyFirst(sizes, options, strategy);
  std::vector<std::string> remarks;
  BOWLINE_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, importDirectory(context, options, strategy, remarks));
  if (dist::StrategyOp strategy = dist::StrategyOp::of(*given))
    strategy->moveBefore(module->getBody(), module->getBody()->begin());
  BOWLINE_ASSIGN_OR_RETURN(CompileResult result, compileWithStrategy(*module, options));
  result.remarks.insert(result.remarks.begin(), remarks.begin(), remarks.end());
  if (trains(options.mode)) {
    BOWLINE_ASSIGN_OR_RETURN(const hf::ModelConfig config, hf::readConfig(options.model));
    result.memoryInputs = memoryInputsOf(config, strategy, options, result.recompute);
    result.leastSizes = StepSizeRules(strategy, config.maxPositions, config.positionsSource).least(options.seq);
  }
  return result;
}

absl::StatusOr<CompileResult> bowline::compileModel(const CompileOptions &options) {
  bool isIr = StringRef(options.model).ends_with(".mlir");
  BOWLINE_RETURN_IF_ERROR(checkOptions(options, isIr));
  if (!isIr && options.from != Phase::Input)
    return absl::InvalidArgumentError(
        absl::StrCat("--compile-from needs a .mlir file, but ", options.model, " is not one"));
  if (options.to < options.from)
    return absl::InvalidArgumentError("--compile-to names a phase before --compile-from");
  if (options.from == Phase::Input)
    BOWLINE_RETURN_IF_ERROR(chooseTarget(options).status());
  if (options.mode == CompileMode::Serve && !isIr && options.to == Phase::Plan && options.memoryLimit > 0 &&
      options.cacheBlocks == 0 && options.cacheBytes == 0)
    return compileServeWithinMemory(options);

  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  if (!isIr)
    return compileDirectory(context, options);
  OwningOpRef<ModuleOp> module;
  {
    // MLIR opens the file its own way, and says of one that is not there that it is not.
    if (absl::Status status = MappedFile::Open(options.model).status(); !status.ok() && !absl::IsNotFound(status))
      return status;
    BOWLINE_RETURN_IF_ERROR(CheckTextFile(options.model));
    DiagnosticCollector diagnostics(&context);
    module = parseSourceFile<ModuleOp>(options.model, &context);
    if (!module)
      return diagnostics.status();
  }
  return compileModule(*module, options);
}
