//===- Gpu/GpuKernelEmitter.cpp - Nests as threads of a GPU
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/GpuKernelEmitter.h"
#include "compiler/Codegen/Decompose.h"
#include "compiler/Codegen/Gpu/ThreadReductions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

namespace {

/// Builds the function of one kernel for a GPU. Each range of blocks computes its GridRange.
class GpuKernelEmitter {
public:
  GpuKernelEmitter(func::FuncOp kernel, const TargetCpu &arithmetic)
      : frame(kernel, kernel.getLoc(), arithmetic, kAccessBytes) {
    values.setReductions(reductions);
  }

  FailureOr<KernelGrid> emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests);

private:
  /// Emits the computation of `range` in its block number `block`, counted from 0.
  void emitRange(const GridRange &range, Value block);
  void emitThreadOfElements(const GridRange &range, Value block);
  void emitRows(const GridRange &range, Value block);
  void emitUnitRow(const GridRange &range);
  /// Runs `body` for the vectors of the segment that this thread computes.
  void emitSegment(const Nest::Segment &segment, llvm::function_ref<void()> body);

  /// How many of `count` pieces there are, of which the nest has equally many for each row.
  Value limited(int64_t count);

  KernelFrame frame;
  KernelBuilder &b = frame.b;
  Scopes scopes{b};
  Indices indices{b, scopes};
  ElementMemory memory{frame, indices};
  Values values{frame, scopes, indices, memory};
  Value validRows; ///< null: all
  Threads threads{b, scopes};
  ThreadReductions reductions{frame, scopes, indices, values, threads};
};

} // namespace

FailureOr<KernelGrid> GpuKernelEmitter::emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests) {
  GridPlan plan = planGrid(frame.kernel, nests);
  if (plan.blocks > INT32_MAX)
    return frame.kernel.emitOpError("needs ") << plan.blocks << " blocks of threads, more than a grid has";

  b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  FunctionType signature = frame.kernel.getFunctionType();
  frame.inputCount = signature.getNumInputs();
  SmallVector<Type> pointers(frame.inputCount + signature.getNumResults(), pointer);
  auto function = LLVM::LLVMFuncOp::create(
      b, symbol, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), pointers));
  function.setCConv(LLVM::cconv::CConv::PTX_Kernel);
  Block *body = function.addEntryBlock(b);
  scopes.begin(body);
  for (auto [i, tensor] : llvm::enumerate(llvm::concat<const Type>(signature.getInputs(), signature.getResults())))
    frame.arguments.push_back({body->getArgument(i), cast<RankedTensorType>(tensor), nullptr});
  threads.begin(plan.threads, (symbol + ".shared").str());
  validRows = loadValidRows(frame);

  for (const GridRange &range : plan.ranges) {
    frame.nest = range.nest;
    // Scopes are begun anew: values that depend on no dimension are those of one nest's expressions.
    scopes.begin(body);
    reductions.begin();
    Value own = arith::SubIOp::create(b, threads.block, b.i32(range.firstBlock));
    if (plan.ranges.size() == 1) {
      emitRange(range, own);
    } else {
      Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, own, b.i32(range.blocks));
      auto branch = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
      Block *inside = branch.thenBlock();
      inside->clear();
      // All that this range computes lies inside of the branch, also values that depend on no dimension.
      scopes.begin(inside);
      emitRange(range, own);
      b.setInsertionPointToEnd(inside);
      scf::YieldOp::create(b);
    }
  }
  b.setInsertionPointToEnd(body);
  LLVM::ReturnOp::create(b, ValueRange());
  threads.defineShared(module);
  if (frame.unsupported)
    return failure();
  return KernelGrid{plan.blocks, plan.threads};
}

void GpuKernelEmitter::emitRange(const GridRange &range, Value block) {
  reductions.prepare(rootsOf(*range.nest));
  range.form == GridRange::Form::Elements ? emitThreadOfElements(range, block) : emitRows(range, block);
}

Value GpuKernelEmitter::limited(int64_t count) {
  if (!validRows)
    return b.constant(count);
  return arith::MulIOp::create(b, validRows, b.constant(count / frame.nest->space.size(frame.nest->outer.front())));
}

void GpuKernelEmitter::emitThreadOfElements(const GridRange &range, Value block) {
  const Nest::Segment &segment = range.nest->segments[range.segment];
  unsigned inner = *segment.dim;
  int64_t size = frame.nest->space.size(inner), vector = range.vector, items = size / vector;
  for (unsigned dim : frame.nest->outer)
    items *= frame.nest->space.size(dim);
  // Below 2^31 divisions are of 32 bits.
  bool isNarrow = items * range.lanes + threads.count <= INT32_MAX;
  Value item;
  if (isNarrow)
    item = b.toI64(arith::AddIOp::create(b, arith::MulIOp::create(b, block, b.i32(threads.count)), threads.thread));
  else
    item =
        arith::AddIOp::create(b, arith::MulIOp::create(b, b.toI64(block), b.constant(threads.count)), threads.number);
  // Neighbouring lanes have neighbouring elements; lanes that share an element are further apart.
  int64_t elementsOfWarp = kWarp / range.lanes;
  Value termLane;
  if (range.lanes > 1) {
    Value warps = arith::DivUIOp::create(b, item, b.constant(kWarp));
    termLane = arith::DivUIOp::create(b, threads.lane, b.constant(elementsOfWarp));
    item = arith::AddIOp::create(b, arith::MulIOp::create(b, warps, b.constant(elementsOfWarp)),
                                 arith::RemUIOp::create(b, threads.lane, b.constant(elementsOfWarp)));
  }
  Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, item, limited(items));
  auto compute = [&] {
    Value rest = item;
    auto take = [&](int64_t extent, bool isSlowest) {
      if (isSlowest)
        return rest;
      Value at = arith::RemUIOp::create(b, rest, b.constant(extent));
      rest = arith::DivUIOp::create(b, rest, b.constant(extent));
      return at;
    };
    Value at = take(size / vector, frame.nest->outer.empty());
    scopes.back().dims[inner] = arith::MulIOp::create(b, at, b.constant(vector));
    for (size_t i = frame.nest->outer.size(); i-- > 0;)
      scopes.back().dims[frame.nest->outer[i]] = take(frame.nest->space.size(frame.nest->outer[i]), i == 0);
    indices.lanes = {dimBit(inner), vector, nullptr};
    if (range.lanes == 1) {
      values.emitStores(segment.stores);
    } else {
      SmallVector<Value> results;
      reductions.withTermLanes(range.lanes, termLane, [&] {
        SmallVector<const Expr *> roots = valuesOf(segment.stores);
        reductions.prepare(roots);
        for (const Expr *root : roots)
          results.push_back(values.value(root));
      });
      scopes.insertHere();
      Lanes around = std::exchange(indices.lanes, {});
      Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, termLane, b.constant(0));
      scopes.emitWhere(arith::AndIOp::create(b, isFirst, isThere), [&] {
        indices.lanes = around;
        for (auto [current, computed] : llvm::zip_equal(segment.stores, results))
          values.store(current, computed);
      });
    }
    indices.lanes = {};
  };
  if (range.lanes == 1)
    return scopes.emitWhere(isThere, compute);
  // Whole warps go on, for their lanes wait for each other: lanes beyond the last element compute that one, and do not
  // store it.
  item = arith::SelectOp::create(b, isThere, item, b.constant(items - 1));
  scopes.emitWhere(arith::ConstantOp::create(b, b.getBoolAttr(true)), compute);
}

void GpuKernelEmitter::emitRows(const GridRange &range, Value block) {
  threads.rowOfBlock = range.form == GridRange::Form::BlockRows;
  int64_t units = 1;
  for (unsigned dim : frame.nest->outer)
    units *= frame.nest->space.size(dim);
  Value unit = block;
  if (!threads.rowOfBlock) {
    unit = arith::MulIOp::create(b, block, b.i32(threads.count / kWarp));
    unit = arith::AddIOp::create(b, unit, arith::ShRUIOp::create(b, threads.thread, b.i32(5)));
  }
  unit = b.toI64(unit);
  auto rows = [&] {
    if (threads.rowOfBlock)
      reductions.setBlockScopes();
    reductions.setRowScopes();
    Value rest = unit;
    for (size_t i = frame.nest->outer.size(); i-- > 0;) {
      Value at = rest;
      if (i > 0) {
        at = arith::RemUIOp::create(b, rest, b.constant(frame.nest->space.size(frame.nest->outer[i])));
        rest = arith::DivUIOp::create(b, rest, b.constant(frame.nest->space.size(frame.nest->outer[i])));
      }
      scopes.back().dims[frame.nest->outer[i]] = at;
    }
    if (!frame.nest->rows)
      return emitUnitRow(range);
    emitSegment(frame.nest->initial, [&] { values.emitStores(frame.nest->initial.stores); });
    // Another thread may add to the elements that this thread cleared.
    threads.barrier();
    scopes.emitCounted(b.constant(0), b.constant(frame.nest->space.size(*frame.nest->rows)), b.constant(1), {},
                       [&](Value row, ValueRange) {
                         scopes.back().dims[*frame.nest->rows] = row;
                         reductions.setBlockScopes();
                         reductions.setRowScopes();
                         emitUnitRow(range);
                         return SmallVector<Value>();
                       });
  };
  if (!validRows && (threads.rowOfBlock || units % (threads.count / kWarp) == 0)) {
    // Emitted in a scope of its own, so that no value with dimensions counts as shared by all blocks.
    scopes.emitWhere(arith::ConstantOp::create(b, b.getBoolAttr(true)), rows);
    return;
  }
  scopes.emitWhere(arith::CmpIOp::create(b, arith::CmpIPredicate::ult, unit, limited(units)), rows);
}

void GpuKernelEmitter::emitUnitRow(const GridRange &range) {
  SmallVector<const Expr *> roots = rootsOf(*range.nest);
  reductions.prepare(roots);
  // Row values are computed before anything is stored: a result may take the place of an argument.
  SmallVector<Value> rowValues;
  for (const Nest::Store &rowStore : frame.nest->rowStores)
    rowValues.push_back(values.value(rowStore.value));
  // A sum of one term reads its element without waiting for other threads, which may write in its place.
  if (llvm::any_of(roots, [](const Expr *root) { return root->reduceDepth > 0; }))
    threads.emitRowBarrier();
  for (const Nest::Segment &segment : frame.nest->segments)
    emitSegment(segment, [&] { values.emitStores(segment.stores); });
  if (frame.nest->rowStores.empty())
    return;
  // These stores may overwrite elements that other threads read once per row, too.
  threads.emitRowBarrier();
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, threads.rowOfBlock ? threads.number : threads.lane,
                                        b.constant(0));
  scopes.emitWhere(isFirst, [&] {
    for (auto [rowStore, rowValue] : llvm::zip_equal(frame.nest->rowStores, rowValues))
      values.store(rowStore, rowValue);
  });
}

void GpuKernelEmitter::emitSegment(const Nest::Segment &segment, llvm::function_ref<void()> body) {
  int64_t size = frame.nest->space.size(*segment.dim);
  int64_t vector = vectorOf(frame.kernel, valuesOf(segment.stores), segment.stores, *segment.dim, size),
          whole = size - size % vector;
  int64_t sharing = threads.rowOfBlock ? threads.count : kWarp;
  scopes.insertHere();
  Value own = threads.rowOfBlock ? threads.number : threads.lane;
  auto emit = [&](int64_t from, int64_t to, int64_t count) {
    scopes.insertHere();
    Value first = arith::AddIOp::create(b, b.constant(from), arith::MulIOp::create(b, own, b.constant(count)));
    scopes.emitCounted(first, b.constant(to), b.constant(sharing * count), {}, [&](Value at, ValueRange) {
      scopes.back().dims[*segment.dim] = at;
      indices.lanes = {dimBit(*segment.dim), count, nullptr};
      body();
      indices.lanes = {};
      return SmallVector<Value>();
    });
  };
  emit(0, whole, vector);
  if (whole < size)
    emit(whole, size, 1);
}

/// Whether a sum or maximum that each block computes for itself reads the argument.
static bool isReadByEachBlock(ArrayRef<std::unique_ptr<Nest>> nests, unsigned argument) {
  bool found = false;
  for (const std::unique_ptr<Nest> &nest : nests)
    forEachExpr(rootsOf(*nest), [&](const Expr *reduce) {
      if (reduce->kind == Expr::Kind::Reduce && reduce->freeDims == 0)
        forEachExpr(reduce->operands,
                    [&](const Expr *load) { found |= load->kind == Expr::Kind::Load && load->argument == argument; });
    });
  return found;
}

FailureOr<GpuKernel> bowline::codegen::emitGpuKernel(func::FuncOp kernel, StringRef symbol) {
  // Expansions of functions may use fused multiply-add and instructions for bf16.
  const TargetCpu arithmetic{"gpu", "x86-64-v3", 128, true};
  OwningOpRef<func::FuncOp> own = kernel.clone();
  decomposeLayers(own->getBody().front());
  auto nests = planNests(*own);
  if (failed(nests) || failed(verifyNests(*nests, *own)))
    return failure();
  GpuKernel result;
  result.inPlace = findInPlacePairs(*own, *nests);
  result.module = ModuleOp::create(kernel.getLoc());
  auto grid = GpuKernelEmitter(*own, arithmetic).emit(*result.module, symbol, *nests);
  if (failed(grid) || failed(verify(*result.module)))
    return failure();
  result.grid = *grid;
  // A block does not wait for others: one may have overwritten elements that another still reads.
  if (grid->blocks > 1)
    llvm::erase_if(result.inPlace, [&](auto pair) { return isReadByEachBlock(*nests, pair.second); });
  return result;
}
