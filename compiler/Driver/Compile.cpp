//===- Compile.cpp - From a model to a plan
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Compile.h"
#include "absl/strings/str_join.h"
#include "compiler/Check/PlanChecker.h"
#include "compiler/Codegen/TargetCpu.h"
#include "compiler/Driver/CompileSetup.h"
#include "compiler/Emit/EmitPlan.h"
#include "compiler/Support/Registration.h"
#include "dialects/Plan/PlanOps.h"
#include "frontends/hf/Import.h"
#include "frontends/hf/Weights.h"
#include "kernels/registry/link.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "passes/Fusion/Traffic.h"
#include "runtime/base/mapped_file.h"

#include <filesystem>
#include <limits>
#include <sched.h>

using namespace mlir;
using namespace bowline;

static constexpr const char *kCompiler = "bowline 0.1.0";

/// Processors that this process may run on.
static int64_t availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return 1;
  return CPU_COUNT(&set);
}

/// "3 and 6": the divisors of \p size that are nearest to \p wanted, which is none.
static std::string nearestDivisors(int64_t size, int64_t wanted) {
  int64_t below = std::min(wanted, size), above = wanted;
  while (size % below != 0)
    --below;
  while (above <= size && size % above != 0)
    ++above;
  return above <= size ? absl::StrCat("s are ", below, " and ", above) : absl::StrCat(" is ", below);
}

static absl::Status checkOptions(const CompileOptions &options, bool isIr) {
  auto invalid = [](auto &&...parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  if (options.dtype != "f32" && options.dtype != "bf16")
    return invalid("--dtype ", options.dtype, " is not supported; use f32 or bf16");
  if (options.microbatches < 1)
    return invalid("--microbatches must be at least 1, got ", options.microbatches);
  if (!isIr && options.seq < 1)
    return invalid("--seq must be given and at least 1");
  if (!isIr && options.mode == CompileMode::Train && options.batch < 1)
    return invalid("--batch must be given and at least 1");
  if (options.mode == CompileMode::Train && options.batch % options.microbatches != 0)
    return invalid("--batch ", options.batch, " must be a multiple of --microbatches ", options.microbatches,
                   "; the nearest valid number", nearestDivisors(options.batch, options.microbatches),
                   ", or take another --batch");
  for (auto [flag, beta] : {std::pair{"--beta1", options.beta1}, std::pair{"--beta2", options.beta2}})
    if (!(beta >= 0 && beta < 1))
      return invalid(flag, " must be at least 0 and less than 1, got ", beta);
  if (!llvm::is_contained({"none", "selective", "full", "auto"}, StringRef(options.recompute)))
    return invalid("--recompute ", options.recompute, " is unknown; use none, selective, full or auto");
  if (options.threads < 0)
    return invalid("--threads must not be negative, got ", options.threads);
  if (options.lrSchedule == "cosine" && options.decaySteps <= options.warmupSteps)
    return invalid("--lr-schedule cosine needs --decay-steps greater than --warmup-steps ", options.warmupSteps,
                   ", got ", options.decaySteps);
  if (!options.mesh.empty() && !options.strategyFile.empty())
    return invalid("--mesh and --strategy both say how to divide the program; remove one");
  if (!(options.mesh.empty() && options.strategyFile.empty()) && options.from != Phase::Input)
    return invalid("--mesh and --strategy divide a program from its beginning; leave out --compile-from");
  if (options.bucketBytes.value_or(0) < 0)
    return invalid("--bucket-bytes must not be negative, got ", *options.bucketBytes);
  if (options.overlapChunks < 0)
    return invalid("--overlap-chunks must be auto, or 1 or more, got ", options.overlapChunks);
  if (options.prefetch < 0)
    return invalid("--prefetch must not be negative, got ", options.prefetch);
  if (options.mesh.empty() && (options.sequenceParallel || options.zero != 0 || !options.zeroAxis.empty() ||
                               !options.schedule.empty() || !options.stages.empty()))
    return invalid("--sequence-parallel, --zero, --zero-axis, --schedule and --stages say how ranks share the work; "
                   "name the ranks with --mesh, for instance --mesh dp=2,tp=2");
  return absl::OkStatus();
}

PipelineOptions bowline::makePipelineOptions(const CompileOptions &options, CpuTarget cpu) {
  PipelineOptions result;
  result.training = options.mode == CompileMode::Train;
  result.seed = options.seed;
  result.threads = options.threads;
  result.cpu = std::move(cpu);
  result.dtype = options.dtype;
  result.bucketBytes = options.bucketBytes;
  result.prefetch = options.prefetch;
  result.overlapChunks = options.overlapChunks;
  result.links = absl::StrJoin(options.links, ";");
  result.recompute = options.recompute;
  result.memoryLimit = static_cast<int64_t>(options.memoryLimit);
  result.disabledSteps = options.disabledSteps;
  result.timing = options.timing;
  InsertOptimizerOptions &optimizer = result.optimizer;
  optimizer.kind = options.optimizer;
  optimizer.microbatches = options.microbatches;
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

/// The graph of a Hugging Face directory, named after the directory, with its config.json attached.
static absl::StatusOr<OwningOpRef<ModuleOp>> importDirectory(MLIRContext &context, const CompileOptions &options,
                                                             std::vector<std::string> &remarks) {
  BOWLINE_ASSIGN_OR_RETURN(hf::ModelConfig config, hf::readConfig(options.model));
  remarks.insert(remarks.end(), config.remarks.begin(), config.remarks.end());
  BOWLINE_RETURN_IF_ERROR(hf::checkWeights(config, options.model).status());
  hf::ImportOptions import;
  import.mode = options.mode == CompileMode::Train ? hf::ImportMode::Train : hf::ImportMode::Generate;
  import.batch = options.mode == CompileMode::Train ? options.batch / options.microbatches : 1;
  import.seq = options.seq;
  BOWLINE_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> module, hf::importModel(context, config, import));

  std::filesystem::path directory = std::filesystem::weakly_canonical(options.model);
  module->setSymName(directory.filename().string());
  std::string path = (std::filesystem::path(options.model) / "config.json").string();
  BOWLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  auto bytes = file.bytes();
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  plan::AttachmentOp::create(builder, builder.getUnknownLoc(), "config.json",
                             StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  return module;
}

absl::StatusOr<CpuTarget> bowline::chooseCpu(const CompileOptions &options) {
  CpuTarget cpu, wanted;
  wanted.cpu = options.targetCpu;
  cpu.cpu = CpuCodegen(wanted).cpu().str();
  if (cpu.cpu.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("--target-cpu ", options.targetCpu, " is unknown; use ", codegen::kTargetCpuNames.str()));
  return cpu;
}

/// Compilation goes on without a cache that cannot be used; the user gets to know why.
static void openKernelCache(const CompileOptions &options, CpuTarget &cpu, std::vector<std::string> &remarks) {
  if (options.kernelCache.empty())
    return;
  auto cache = KernelCache::open(options.kernelCache);
  if (cache.ok())
    cpu.cache = std::move(*cache);
  else
    remarks.push_back(absl::StrCat("kernels are not kept for the next compilation: ", cache.status().message(),
                                   "; name another folder with --kernel-cache, or off"));
}

/// Only optimisations may be left out, and a name that is none is a mistake of the caller.
static absl::Status checkDisabledSteps(const PipelineOptions &pipeline) {
  std::vector<std::string> names;
  for (const Step &step : pipelineSteps(pipeline))
    if (step.optional)
      names.push_back(step.name.str());
  for (const std::string &disabled : pipeline.disabledSteps)
    if (!llvm::is_contained(names, disabled))
      return absl::InvalidArgumentError(absl::StrCat(
          "--disable-step ", disabled, " is no step that may be left out; use one of ", absl::StrJoin(names, ", ")));
  return absl::OkStatus();
}

/// Moves the strategy of a file into the module.
static absl::Status moveStrategy(ModuleOp module, const CompileOptions &options, DiagnosticCollector &diagnostics) {
  const std::string &path = options.strategyFile;
  OwningOpRef<ModuleOp> file = parseSourceFile<ModuleOp>(path, module.getContext());
  if (!file)
    return diagnostics.status();
  auto strategies = llvm::to_vector(file->getOps<dist::StrategyOp>());
  if (strategies.size() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("--strategy ", path, " has ", strategies.size(), " dist.strategy operations; it must have one"));
  if (dist::StrategyOp other = Strategy::find(module))
    return absl::InvalidArgumentError(absl::StrCat("--strategy ", path, " and the model, which has a strategy '",
                                                   other.getSymName().str(),
                                                   "' of its own, both say how to divide the "
                                                   "program; remove one"));
  dist::ScheduleOp schedule = strategies.front().getOnly<dist::ScheduleOp>();
  std::optional<int64_t> microbatches = schedule ? schedule.getMicrobatches() : std::nullopt;
  if (microbatches && *microbatches != options.microbatches)
    return absl::InvalidArgumentError(absl::StrCat("--strategy ", path, " says ", *microbatches,
                                                   " microbatches, and --microbatches ", options.microbatches,
                                                   "; use --microbatches ", *microbatches, " or change the file"));
  strategies.front()->moveBefore(module.getBody(), module.getBody()->begin());
  return absl::OkStatus();
}

/// The strategy that flags are the short form of.
static LogicalResult writeStrategy(ModuleOp module, const CompileOptions &options) {
  StrategyFlags flags;
  flags.mesh = options.mesh;
  flags.sequenceParallel = options.sequenceParallel;
  flags.zero = options.zero;
  flags.zeroAxis = options.zeroAxis;
  flags.schedule = options.schedule;
  flags.microbatches = options.microbatches;
  flags.stages = options.stages;
  if (dist::StrategyOp other = Strategy::find(module))
    return other.emitOpError("and --mesh ") << options.mesh << " both say how to divide the program; remove one";
  FailureOr<Strategy> strategy = Strategy::fromFlags(flags, [&] { return module.emitError(); });
  if (failed(strategy))
    return failure();
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  strategy->write(builder, module.getLoc(), "strategy");
  return success();
}

absl::Status bowline::addStrategy(ModuleOp module, const CompileOptions &options, DiagnosticCollector &diagnostics) {
  if (!options.strategyFile.empty())
    return moveStrategy(module, options, diagnostics);
  if (!options.mesh.empty() && failed(writeStrategy(module, options)))
    return diagnostics.status();
  return absl::OkStatus();
}

/// Of the strategy, or of the program that was divided already; null for one rank.
static dist::MeshOp findMesh(ModuleOp module) {
  if (dist::StrategyOp strategy = Strategy::find(module))
    return strategy.getMesh();
  auto meshes = module.getOps<dist::MeshOp>();
  return meshes.empty() ? dist::MeshOp() : *meshes.begin();
}

static int64_t countRanks(ModuleOp module) {
  dist::MeshOp mesh = findMesh(module);
  return mesh ? mesh.getRankCount() : 1;
}

/// Before anything takes time.
static absl::Status checkLinks(ModuleOp module, const CompileOptions &options) {
  std::vector<std::string> axes;
  if (dist::MeshOp mesh = findMesh(module))
    for (auto name : mesh.getAxisNames().getAsRange<StringAttr>())
      axes.push_back(name.str());
  return kernels::ParseLinks(options.links, axes).status();
}

void bowline::describeTarget(ModuleOp module, const CompileOptions &options, const PipelineOptions &pipeline) {
  Builder builder(module.getContext());
  module->setAttr(plan::PlanDialect::kCompilerAttr, builder.getStringAttr(kCompiler));
  module->setAttr(plan::PlanDialect::kSeedAttr, builder.getI64IntegerAttr(options.seed));
  module->setAttr(plan::PlanDialect::kTargetAttr,
                  plan::TargetAttr::get(module.getContext(), "cpu", "x86_64", pipeline.cpu.cpu, pipeline.threads));
}

namespace {

/// Compiles with the least recomputation whose plan is within the memory limit. Passes estimate memory; what counts is
/// the packed arena, so that estimates are tried until one is good. The cheapest attempt within the limit stays, or the
/// smallest one.
class LimitSearch {
public:
  LimitSearch(ModuleOp module, PipelineOptions pipeline, const CompileOptions &options,
              DiagnosticCollector &diagnostics)
      : module(module), pipeline(std::move(pipeline)), options(options), diagnostics(diagnostics),
        limit(static_cast<int64_t>(options.memoryLimit)) {}

  LogicalResult run(std::vector<std::string> &remarks) {
    if (options.from < Phase::Local && failed(runPhases(module, pipeline, options.from, Phase::Local)))
      return failure();
    llvm::append_range(remarks, diagnostics.takeRemarks());
    if (failed(search()))
      return failure();
    module.getBodyRegion().takeBody(best->getBodyRegion());
    module->setAttrs(best.get()->getAttrDictionary());
    llvm::append_range(remarks, bestRemarks);
    return success();
  }

private:
  static constexpr int64_t kAnything = 1; // a target that nothing meets: as small as can be
  static constexpr int kAttempts = 6;

  LogicalResult search() {
    if (failed(attempt(0)) || fits(arena))
      return success(arena > 0);
    if (failed(attempt(limit)))
      return failure();
    int64_t good = limit, bad = limit + (limit - arena);
    if (!fits(arena)) {
      bad = limit;
      good = kAnything;
      int64_t excess = arena - limit;
      if (failed(attempt(kAnything)))
        return failure();
      if (!fits(arena))
        return success();
      return bisect(good, bad, std::max(limit - excess, kAnything));
    }
    return bisect(good, bad, bad);
  }

  LogicalResult bisect(int64_t good, int64_t bad, int64_t first) {
    int64_t target = first;
    for (int i = 0; i < kAttempts && bad - good > limit / 256; ++i) {
      if (failed(attempt(target)))
        return failure();
      (fits(arena) ? good : bad) = target;
      target = good + (bad - good) / 2;
    }
    return success();
  }

  bool fits(int64_t bytes) const { return bytes <= limit; }

  /// Sets `arena`, and `best` where this attempt is better. Later attempts within the limit recompute less.
  LogicalResult attempt(int64_t target) {
    OwningOpRef<ModuleOp> copy = module.clone();
    pipeline.memoryTarget = target;
    arena = 0;
    if (failed(runPhases(*copy, pipeline, std::max(options.from, Phase::Local), options.to)))
      return failure();
    std::vector<std::string> said = diagnostics.takeRemarks();
    arena = (*copy)->getAttrOfType<IntegerAttr>(plan::PlanDialect::kArenaBytesAttr).getInt();
    bool better = fits(arena) ? !fits(bestArena) || target >= bestTarget : arena < bestArena;
    if (!better)
      return success();
    best = std::move(copy);
    bestArena = arena;
    bestTarget = target;
    bestRemarks = std::move(said);
    return success();
  }

  ModuleOp module;
  PipelineOptions pipeline;
  const CompileOptions &options;
  DiagnosticCollector &diagnostics;
  int64_t limit, arena = 0;
  OwningOpRef<ModuleOp> best;
  int64_t bestArena = std::numeric_limits<int64_t>::max(), bestTarget = 0;
  std::vector<std::string> bestRemarks;
};

} // namespace

/// Gives a plan the certificate that its loader checks.
static absl::Status prove(fbs::PlanT &plan) {
  absl::Status status = CertifyPlan(plan);
  if (status.code() != absl::StatusCode::kAborted)
    return status;
  return absl::InternalError(
      absl::StrCat("the compiled plan fails a proof, which is a fault of the compiler and not of "
                   "the model or the strategy; please report it: ",
                   status.message()));
}

absl::StatusOr<CompileResult> bowline::compileModule(ModuleOp module, const CompileOptions &options) {
  BOWLINE_RETURN_IF_ERROR(checkOptions(options, /*isIr=*/true));
  BOWLINE_ASSIGN_OR_RETURN(CpuTarget cpu, chooseCpu(options));
  CompileResult result;
  cpu.hasCode = options.codegen;
  if (options.to >= Phase::Memory && options.codegen)
    openKernelCache(options, cpu, result.remarks);
  DiagnosticCollector diagnostics(module.getContext());
  PipelineOptions pipeline = makePipelineOptions(options, cpu);
  BOWLINE_RETURN_IF_ERROR(addStrategy(module, options, diagnostics));
  BOWLINE_RETURN_IF_ERROR(checkLinks(module, options));
  if (pipeline.threads == 0)
    pipeline.threads = std::max<int64_t>(1, availableProcessors() / countRanks(module));
  BOWLINE_RETURN_IF_ERROR(checkDisabledSteps(pipeline));
  if (options.from == Phase::Input)
    describeTarget(module, options, pipeline);
  pipeline.memoryTarget = static_cast<int64_t>(options.memoryLimit);
  bool searches = options.recompute == "auto" && options.mode == CompileMode::Train && options.memoryLimit > 0 &&
                  options.from < Phase::Fuse && options.to >= Phase::Memory;
  if (failed(searches ? LimitSearch(module, pipeline, options, diagnostics).run(result.remarks)
                      : runPhases(module, pipeline, options.from, options.to)))
    return diagnostics.status();
  llvm::append_range(result.remarks, diagnostics.takeRemarks());
  if (options.to == Phase::Plan) {
    auto plan = emitPlan(module);
    if (failed(plan))
      return diagnostics.status();
    result.plan = std::move(*plan);
    BOWLINE_RETURN_IF_ERROR(prove(*result.plan));
    auto addLiveBytes = [&](ModuleOp role) {
      if (auto live = role->getAttrOfType<IntegerAttr>(plan::PlanDialect::kLiveBytesAttr))
        result.liveBytes.push_back(live.getInt());
    };
    addLiveBytes(module);
    llvm::for_each(module.getOps<ModuleOp>(), addLiveBytes);
    if (auto unfused = module->getAttrOfType<DictionaryAttr>(kUnfusedBytesAttr))
      for (NamedAttribute entry : unfused)
        result.unfusedBytes[entry.getName().str()] = cast<FloatAttr>(entry.getValue()).getValueAsDouble();
    return result;
  }
  llvm::raw_string_ostream stream(result.ir);
  module->print(stream, OpPrintingFlags().enableDebugInfo());
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
  BOWLINE_RETURN_IF_ERROR(chooseCpu(options).status());

  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module;
  std::vector<std::string> remarks;
  if (isIr) {
    DiagnosticCollector diagnostics(&context);
    module = parseSourceFile<ModuleOp>(options.model, &context);
    if (!module)
      return diagnostics.status();
  } else {
    BOWLINE_ASSIGN_OR_RETURN(module, importDirectory(context, options, remarks));
  }
  BOWLINE_ASSIGN_OR_RETURN(CompileResult result, compileModule(*module, options));
  result.remarks.insert(result.remarks.begin(), remarks.begin(), remarks.end());
  return result;
}
