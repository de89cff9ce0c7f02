//===- StrategyFlags.cpp - From the flags of a command to a strategy
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Strategy/StrategyFlags.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bowline;

namespace {

/// One flag as it was written, and where its line goes.
struct Flag {
  std::string text;
  Location location;
};

class FlagWriter {
public:
  FlagWriter(ModuleOp module, const StrategyFlags &flags)
      : module(module), flags(flags), strategy(dist::StrategyOp::of(module)) {}

  LogicalResult run() {
    LogicalResult written =
        success(succeeded(addMesh()) && succeeded(addZero()) && succeeded(addSequenceParallel()) &&
                succeeded(addMicrobatches()) && succeeded(addStages()) && succeeded(addSchedule()) &&
                succeeded(addRecompute()) && succeeded(addBucketBytes()) && succeeded(addOverlapChunks()));
    return success(succeeded(written) && (!strategy || succeeded(verify(strategy))));
  }

private:
  Flag flag(const Twine &text) {
    std::string words = text.str();
    Location location = NameLoc::get(StringAttr::get(module.getContext(), words));
    return {std::move(words), location};
  }

  template <typename LineOp> LineOp find() { return strategy ? strategy.getOnly<LineOp>() : LineOp(); }

  /// A builder at the end of the strategy, which is created for the first line.
  OpBuilder atEnd() {
    if (!strategy) {
      OpBuilder builder(module.getContext());
      strategy = dist::StrategyOp::create(builder, module.getLoc(), "strategy");
      strategy.getBody().emplaceBlock();
      // Under another name where the model has this one.
      SymbolTable(module).insert(strategy, module.getBody()->begin());
    }
    return OpBuilder::atBlockEnd(&strategy.getBody().front());
  }

  static LogicalResult refuse(Operation *line, const Flag &flag) {
    return line->emitOpError("says otherwise than ") << flag.text << "; remove one of them";
  }

  /// Puts the value of a flag into the strategy's line of type LineOp. Where there is such a line already, `agrees`
  /// says whether it has the flag's value; if not, it is refused. Where there is none, `create` makes one, but not for
  /// the default.
  template <typename LineOp>
  LogicalResult say(const Flag &flag, bool isDefault, llvm::function_ref<bool(LineOp)> agrees,
                    llvm::function_ref<void(OpBuilder &)> create) {
    if (auto line = find<LineOp>())
      return agrees(line) ? success() : refuse(line, flag);
    if (isDefault)
      return success();
    OpBuilder builder = atEnd();
    create(builder);
    return success();
  }

  LogicalResult addMesh();
  LogicalResult addZero();
  LogicalResult addSequenceParallel();
  LogicalResult addMicrobatches();
  LogicalResult addStages();
  LogicalResult addSchedule();
  LogicalResult addRecompute();
  LogicalResult addBucketBytes();
  LogicalResult addOverlapChunks();

  ModuleOp module;
  const StrategyFlags &flags;
  dist::StrategyOp strategy;
};

} // namespace

//===----------------------------------------------------------------------===//
// Division of the computation among ranks
//===----------------------------------------------------------------------===//

LogicalResult FlagWriter::addMesh() {
  if (flags.mesh.empty())
    return success();
  Flag mesh = flag("--mesh " + flags.mesh);
  SmallVector<StringRef> names, parts;
  SmallVector<int64_t> sizes;
  StringRef(flags.mesh).split(parts, ',');
  for (StringRef part : parts) {
    auto [name, number] = part.split('=');
    name = name.trim();
    if (name.empty() || number.trim().getAsInteger(10, sizes.emplace_back())) {
      // Another name needs a use.
      StringRef known = llvm::is_contained({"pp", "dp", "fsdp", "tp"}, name) ? name : "dp";
      return emitError(mesh.location) << "axes are NAME=SIZE, with commas between, for instance '" << known
                                      << "=N' of N ranks, and not '" << part.take_front(50) << "'";
    }
    names.push_back(name);
  }
  return say<dist::MeshOp>(
      mesh, /*isDefault=*/false,
      [&](dist::MeshOp line) {
        return llvm::equal(line.getAxisNames().getAsValueRange<StringAttr>(), names) &&
               line.getAxisSizes() == ArrayRef(sizes);
      },
      [&](OpBuilder &builder) {
        builder.setInsertionPointToStart(builder.getInsertionBlock());
        dist::MeshOp::create(builder, mesh.location, "mesh", builder.getStrArrayAttr(names), sizes);
      });
}

LogicalResult FlagWriter::addZero() {
  if (flags.zero) {
    int64_t level = *flags.zero;
    Flag zero = flag("--zero " + Twine(level));
    LogicalResult said = say<dist::ZeroOp>(
        zero, /*isDefault=*/level == 0 && flags.zeroAxis.empty() && !flags.prefetch && !flags.zeroOnce &&
                  !flags.zeroEach, // the line refuses them
        [&](dist::ZeroOp line) { return static_cast<int64_t>(line.getLevel()) == level; },
        [&](OpBuilder &builder) {
          dist::ZeroOp::create(builder, zero.location, builder.getI64IntegerAttr(level), StringAttr(), IntegerAttr(),
                               UnitAttr(), UnitAttr());
        });
    if (failed(said))
      return failure();
  }
  auto line = find<dist::ZeroOp>();
  Flag axis = flag("--zero-axis " + flags.zeroAxis), prefetch = flag("--prefetch " + Twine(flags.prefetch.value_or(0)));
  const bool saysGathers = flags.zeroOnce || flags.zeroEach;
  Flag gathers = flag(flags.zeroOnce ? "--zero-once" : "--zero-each");
  if (!line && (flags.prefetch || saysGathers || !flags.zeroAxis.empty()))
    return emitError((flags.prefetch ? prefetch
                      : saysGathers  ? gathers
                                     : axis)
                         .location)
           << "says how parameters and states are divided, which nothing asks for; add --zero "
           << (flags.prefetch || saysGathers ? "3" : "1, 2 or 3") << ", or remove it";
  if (!flags.zeroAxis.empty()) {
    if (line.getAxis() && *line.getAxis() != flags.zeroAxis)
      return refuse(line, axis);
    line.setAxis(StringRef(flags.zeroAxis));
  }
  if (flags.prefetch) {
    if (line.getPrefetch() && static_cast<int64_t>(*line.getPrefetch()) != *flags.prefetch)
      return refuse(line, prefetch);
    line.setPrefetch(*flags.prefetch);
  }
  if (flags.zeroOnce && flags.zeroEach)
    return emitError(flag("--zero-each").location)
           << "gathers parameters for each microbatch, and --zero-once once for all; remove one of them";
  if ((flags.zeroOnce && line.getEach()) || (flags.zeroEach && line.getOnce()))
    return refuse(line, gathers);
  if (flags.zeroOnce)
    line.setOnce(true);
  if (flags.zeroEach)
    line.setEach(true);
  return success();
}

LogicalResult FlagWriter::addSequenceParallel() {
  if (!flags.sequenceParallel)
    return success();
  Flag sequence = flag("--sequence-parallel");
  auto tensor = find<dist::TensorParallelOp>();
  std::string axis = tensor ? tensor.getAxis().str() : "tp";
  dist::MeshOp mesh = find<dist::MeshOp>();
  if (!mesh || !mesh.getAxis(axis))
    return emitError(sequence.location) << "it goes along the axis of tensor parallelism, and there is no axis \""
                                        << axis << "\"; add one of N ranks to the mesh: --mesh " << axis << "=N";
  return say<dist::SequenceParallelOp>(
      sequence, /*isDefault=*/false, [](dist::SequenceParallelOp) { return true; },
      [&](OpBuilder &builder) { dist::SequenceParallelOp::create(builder, sequence.location, axis); });
}

//===----------------------------------------------------------------------===//
// Order of the computation, and kept values
//===----------------------------------------------------------------------===//

LogicalResult FlagWriter::addMicrobatches() {
  if (!flags.microbatches)
    return success();
  int64_t count = *flags.microbatches;
  Flag microbatches = flag("--microbatches " + Twine(count));
  return say<dist::MicrobatchesOp>(
      microbatches, /*isDefault=*/count == 1,
      [&](dist::MicrobatchesOp line) { return static_cast<int64_t>(line.getCount()) == count; },
      [&](OpBuilder &builder) { dist::MicrobatchesOp::create(builder, microbatches.location, count); });
}

/// Two lists of the same layers may differ in blanks alone.
static std::string withoutBlanks(StringRef text) {
  std::string words = text.str();
  llvm::erase_if(words, [](char c) { return llvm::isSpace(c); });
  return words;
}

LogicalResult FlagWriter::addStages() {
  if (flags.stages.empty())
    return success();
  Flag stages = flag("--stages " + flags.stages);
  if (auto line = find<dist::StagesOp>()) {
    if (line.getSplit() && withoutBlanks(*line.getSplit()) != withoutBlanks(flags.stages))
      return refuse(line, stages);
    line.setSplit(StringRef(flags.stages));
    return success();
  }
  dist::MeshOp mesh = find<dist::MeshOp>();
  if (!mesh || !mesh.getAxis("pp"))
    return emitError(stages.location) << "layers are divided along an axis for stages, and there is none; add one "
                                         "of N ranks to the mesh: --mesh pp=N";
  OpBuilder builder = atEnd();
  dist::StagesOp::create(builder, stages.location, builder.getStringAttr("pp"), builder.getStringAttr(flags.stages));
  return success();
}

LogicalResult FlagWriter::addSchedule() {
  if (flags.schedule.empty())
    return success();
  Flag schedule = flag("--schedule " + flags.schedule);
  return say<dist::ScheduleOp>(
      schedule, /*isDefault=*/false, [&](dist::ScheduleOp line) { return line.getSchedule() == flags.schedule; },
      [&](OpBuilder &builder) {
        dist::ScheduleOp::create(builder, schedule.location, builder.getStringAttr(flags.schedule), StringAttr());
      });
}

LogicalResult FlagWriter::addRecompute() {
  if (flags.recompute.empty())
    return success();
  Flag recompute = flag("--recompute " + flags.recompute);
  return say<dist::RecomputeOp>(
      recompute, /*isDefault=*/flags.recompute == "none",
      [&](dist::RecomputeOp line) { return line.getActivations() == flags.recompute; },
      [&](OpBuilder &builder) { dist::RecomputeOp::create(builder, recompute.location, flags.recompute); });
}

//===----------------------------------------------------------------------===//
// How ranks exchange
//===----------------------------------------------------------------------===//

LogicalResult FlagWriter::addBucketBytes() {
  if (!flags.bucketBytes)
    return success();
  int64_t bytes = *flags.bucketBytes;
  Flag buckets = flag("--bucket-bytes " + Twine(bytes));
  return say<dist::BucketBytesOp>(
      buckets, /*isDefault=*/bytes == dist::bucketBytesOf(module),
      [&](dist::BucketBytesOp line) { return static_cast<int64_t>(line.getBytes()) == bytes; },
      [&](OpBuilder &builder) { dist::BucketBytesOp::create(builder, buckets.location, bytes); });
}

LogicalResult FlagWriter::addOverlapChunks() {
  if (!flags.overlapChunks)
    return success();
  int64_t count = *flags.overlapChunks;
  Flag chunks = flag("--overlap-chunks " + (count == 0 ? "auto" : std::to_string(count)));
  return say<dist::OverlapChunksOp>(
      chunks, /*isDefault=*/count == 1,
      [&](dist::OverlapChunksOp line) { return static_cast<int64_t>(line.getCount().value_or(0)) == count; },
      [&](OpBuilder &builder) {
        dist::OverlapChunksOp::create(builder, chunks.location,
                                      count == 0 ? IntegerAttr() : builder.getI64IntegerAttr(count));
      });
}

LogicalResult bowline::addStrategyFlags(ModuleOp module, const StrategyFlags &flags) {
  return FlagWriter(module, flags).run();
}
