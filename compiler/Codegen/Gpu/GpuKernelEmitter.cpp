//===- Gpu/GpuKernelEmitter.cpp - Nests as threads of a GPU
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/GpuKernelEmitter.h"
#include "compiler/Codegen/Decompose.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

/// Threads of a block. A thread of a larger one may have too few registers for what it computes.
static constexpr int64_t kMaxThreads = 512;

/// Threads of a block that computes elements, or rows by warps.
static constexpr int64_t kThreads = 256;

/// Accesses of one thread are this wide at most.
static constexpr int64_t kAccessBytes = 16;

/// Vectors of a row per lane up to which a warp computes it alone.
static constexpr int64_t kVectorsPerLane = 16;

/// Threads that keep a device busy: with fewer rows than warps for that, each row gets a block.
static constexpr int64_t kBusyThreads = int64_t{1} << 16;

/// A multiple of this in bytes is the first byte of every argument.
static constexpr int64_t kArgumentAlignment = 64;

static int64_t bytesOf(Type elementType) { return memoryType(elementType).getIntOrFloatBitWidth() / 8; }

static SmallVector<const Expr *> rootsOf(const Nest &nest) {
  SmallVector<const Expr *> roots;
  for (const Nest::Store &store : nest.rowStores)
    roots.push_back(store.value);
  for (const Nest::Segment &segment : nest.segments)
    for (const Nest::Store &store : segment.stores)
      roots.push_back(store.value);
  return roots;
}

int64_t GpuKernelEmitter::vectorOf(ArrayRef<const Expr *> roots, ArrayRef<Nest::Store> stores, unsigned dim,
                                   int64_t size) {
  int64_t narrowest = kAccessBytes, widest = 1;
  bool isDense = true;
  auto use = [&](Type tensor, AffineExpr index) {
    auto step = IndexSpace::coefficient(index, dim);
    isDense &= step.has_value() && (*step == 0 || *step == 1);
    if (step != 1)
      return;
    int64_t bytes = bytesOf(cast<RankedTensorType>(tensor).getElementType());
    narrowest = std::min(narrowest, bytes);
    widest = std::max(widest, bytes);
  };
  FunctionType type = kernel.getFunctionType();
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind == Expr::Kind::Load && IndexSpace::dimsOf(expr->index) & dimBit(dim))
      use(type.getInput(expr->argument), expr->index);
    for (const Expr::Box &box : expr->boxes)
      for (const Expr::Bound &bound : box)
        isDense &= !(IndexSpace::dimsOf(bound.index) & dimBit(dim));
  });
  for (const Nest::Store &store : stores)
    use(type.getResult(store.output), store.index);
  if (!isDense)
    return 1;
  int64_t count = kAccessBytes / narrowest;
  while (count > 1 && (size < count || count * widest > 2 * kAccessBytes))
    count /= 2;
  return count;
}

void GpuKernelEmitter::addParts(const Nest &planned) {
  nest = &planned;
  SmallVector<const Expr *> roots = rootsOf(planned);
  DimSet rowDims = planned.rows ? dimBit(*planned.rows) : 0;
  for (unsigned dim : planned.outer)
    rowDims |= dimBit(dim);
  // The most vectors that a row has, of those that are reduced and of those that are written.
  int64_t vectors = 1;
  bool reducesRow = false;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind != Expr::Kind::Reduce || expr->freeDims == 0 || expr->freeDims & ~rowDims)
      return;
    reducesRow = true;
    int64_t elements = 1;
    for (unsigned dim : expr->dims)
      elements *= planned.space.size(dim);
    vectors = std::max(
        vectors, elements / vectorOf(expr->operands, {}, expr->dims.back(), planned.space.size(expr->dims.back())));
  });
  int64_t units = 1;
  for (unsigned dim : planned.outer)
    units *= planned.space.size(dim);
  if (!reducesRow && !planned.rows && planned.rowStores.empty()) {
    for (auto [i, segment] : llvm::enumerate(planned.segments)) {
      int64_t size = planned.space.size(*segment.dim);
      Part part{&planned, Form::Elements, static_cast<unsigned>(i), kThreads};
      part.vector = vectorOf(valuesOf(segment.stores), segment.stores, *segment.dim, size);
      while (size % part.vector != 0)
        part.vector /= 2;
      int64_t items = units * (size / part.vector);
      part.lanes = lanesOfElement(valuesOf(segment.stores), *segment.dim, items);
      part.blocks = items * part.lanes;
      parts.push_back(part);
    }
    return;
  }
  for (const Nest::Segment &segment : planned.segments) {
    int64_t size = planned.space.size(*segment.dim);
    vectors = std::max(vectors, size / vectorOf(valuesOf(segment.stores), segment.stores, *segment.dim, size));
  }
  Part part{&planned, Form::WarpRows, 0, kThreads};
  bool isShort = vectors <= kWarp, isFew = units * kWarp < kBusyThreads;
  if (planned.rows || (!isShort && (isFew || vectors > kWarp * kVectorsPerLane))) {
    part.form = Form::BlockRows;
    part.threads =
        std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(vectors, isFew ? 1 : 4)), 2 * kWarp, kMaxThreads);
  }
  part.blocks = units;
  parts.push_back(part);
}

int64_t GpuKernelEmitter::lanesOfElement(ArrayRef<const Expr *> roots, unsigned inner, int64_t items) {
  // The shortest sum: with fewer terms than lanes some would have none.
  int64_t terms = 1;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind != Expr::Kind::Reduce || !(expr->freeDims & dimBit(inner)))
      return;
    int64_t own = 1;
    for (unsigned dim : expr->dims)
      own *= nest->space.size(dim);
    terms = terms == 1 ? own : std::min(terms, own);
  });
  int64_t lanes = 1;
  while (lanes < kWarp && items * lanes < kBusyThreads && terms >= 4 * lanes)
    lanes *= 2;
  return lanes;
}

void GpuKernelEmitter::placeParts() {
  for (const Part &part : parts)
    blockThreads = std::max(blockThreads, part.threads);
  for (Part &part : parts) {
    int64_t perBlock = part.form == Form::Elements   ? blockThreads
                       : part.form == Form::WarpRows ? blockThreads / kWarp
                                                     : 1;
    part.firstBlock = blockCount;
    part.blocks = llvm::divideCeil(part.blocks, perBlock);
    blockCount += part.blocks;
  }
}

Value GpuKernelEmitter::intrinsic(StringRef name, Type type, ValueRange operands) {
  auto call = LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name), operands);
  return type ? call->getResult(0) : Value();
}

FailureOr<KernelGrid> GpuKernelEmitter::emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests) {
  for (const std::unique_ptr<Nest> &planned : nests)
    addParts(*planned);
  placeParts();
  if (blockCount > INT32_MAX)
    return kernel.emitOpError("needs ") << blockCount << " blocks of threads, more than a grid has";
  sharedName = (symbol + ".shared").str();

  b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i32Type = b.getI32Type();
  FunctionType signature = kernel.getFunctionType();
  inputCount = signature.getNumInputs();
  SmallVector<Type> pointers(inputCount + signature.getNumResults(), pointer);
  auto function = LLVM::LLVMFuncOp::create(
      b, symbol, LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), pointers));
  function.setCConv(LLVM::cconv::CConv::PTX_Kernel);
  Block *body = function.addEntryBlock(b);
  scopes.emplace_back(body);
  b.setInsertionPointToEnd(body);
  for (auto [i, tensor] : llvm::enumerate(llvm::concat<const Type>(signature.getInputs(), signature.getResults())))
    arguments.push_back({body->getArgument(i), cast<RankedTensorType>(tensor), nullptr});
  thread = intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", i32Type);
  Value block = intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.x", i32Type);
  threadNumber = toI64(thread);
  lane = toI64(arith::AndIOp::create(b, thread, i32(kWarp - 1)));
  warp = toI64(arith::ShRUIOp::create(b, thread, i32(5)));

  for (const Part &part : parts) {
    nest = part.nest;
    scopes.truncate(1);
    // Values without dimensions belong to one nest, whose expressions they are.
    scopes[0] = Scope(body);
    blockScopes = rowScopes = 1;
    b.setInsertionPointToEnd(body);
    Value own = arith::SubIOp::create(b, block, i32(part.firstBlock));
    if (parts.size() == 1) {
      emitPart(part, own);
    } else {
      Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, own, i32(part.blocks));
      auto branch = scf::IfOp::create(b, isOwn, /*withElseRegion=*/false);
      Block *inside = branch.thenBlock();
      inside->clear();
      // All that this part computes lies inside, what has no dimensions too.
      scopes[0] = Scope(inside);
      b.setInsertionPointToEnd(inside);
      emitPart(part, own);
      b.setInsertionPointToEnd(inside);
      scf::YieldOp::create(b);
    }
  }
  b.setInsertionPointToEnd(body);
  LLVM::ReturnOp::create(b, ValueRange());
  if (sharedSlots > 0) {
    b.setInsertionPointToStart(module.getBody());
    auto type = LLVM::LLVMArrayType::get(b.getI64Type(), sharedSlots * kWarp);
    LLVM::GlobalOp::create(b, type, /*isConstant=*/false, LLVM::Linkage::Internal, sharedName, Attribute(),
                           /*alignment=*/16, /*addrSpace=*/3);
  }
  if (unsupported)
    return failure();
  return KernelGrid{blockCount, blockThreads};
}

void GpuKernelEmitter::emitPart(const Part &part, Value block) {
  prepare(rootsOf(*part.nest));
  part.form == Form::Elements ? emitThreadOfElements(part, block) : emitRows(part, block);
}

void GpuKernelEmitter::emitWhere(Value condition, llvm::function_ref<void()> body) {
  insertHere();
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  branch.thenBlock()->clear();
  emitInside(branch, Scope(branch.thenBlock()), [&] {
    insertHere();
    body();
    insertHere();
    scf::YieldOp::create(b);
  });
}

SmallVector<Value> GpuKernelEmitter::emitCounted(Value from, Value to, Value step, ValueRange initial,
                                                 CountedBody body) {
  insertHere();
  auto loop = scf::ForOp::create(b, from, to, step, initial);
  loop.getBody()->clear();
  emitInside(loop, Scope(loop.getBody()), [&] {
    insertHere();
    SmallVector<Value> results = body(loop.getInductionVar(), loop.getRegionIterArgs());
    insertHere();
    scf::YieldOp::create(b, results);
  });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

void GpuKernelEmitter::emitThreadOfElements(const Part &part, Value block) {
  const Nest::Segment &segment = part.nest->segments[part.segment];
  unsigned inner = *segment.dim;
  int64_t size = nest->space.size(inner), vector = part.vector, items = size / vector;
  for (unsigned dim : nest->outer)
    items *= nest->space.size(dim);
  // Below 2^31 divisions are of 32 bits.
  bool isNarrow = items * part.lanes + blockThreads <= INT32_MAX;
  Value item;
  if (isNarrow)
    item = toI64(arith::AddIOp::create(b, arith::MulIOp::create(b, block, i32(blockThreads)), thread));
  else
    item = arith::AddIOp::create(b, arith::MulIOp::create(b, toI64(block), constant(blockThreads)), threadNumber);
  // Neighbouring lanes have neighbouring elements; those that share one are further apart.
  int64_t elementsOfWarp = kWarp / part.lanes;
  if (part.lanes > 1) {
    Value warps = arith::DivUIOp::create(b, item, constant(kWarp));
    termLane = arith::DivUIOp::create(b, lane, constant(elementsOfWarp));
    item = arith::AddIOp::create(b, arith::MulIOp::create(b, warps, constant(elementsOfWarp)),
                                 arith::RemUIOp::create(b, lane, constant(elementsOfWarp)));
  }
  Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, item, constant(items));
  auto compute = [&] {
    Value rest = item;
    auto take = [&](int64_t extent, bool isSlowest) {
      if (isSlowest)
        return rest;
      Value at = arith::RemUIOp::create(b, rest, constant(extent));
      rest = arith::DivUIOp::create(b, rest, constant(extent));
      return at;
    };
    Value at = take(size / vector, nest->outer.empty());
    scopes.back().dims[inner] = arith::MulIOp::create(b, at, constant(vector));
    for (size_t i = nest->outer.size(); i-- > 0;)
      scopes.back().dims[nest->outer[i]] = take(nest->space.size(nest->outer[i]), i == 0);
    lanes = {dimBit(inner), vector, nullptr};
    if (part.lanes == 1) {
      emitStores(segment);
    } else {
      termLanes = part.lanes;
      termScope = scopes.size();
      SmallVector<const Expr *> roots = valuesOf(segment.stores);
      prepare(roots);
      SmallVector<Value> values;
      for (const Expr *root : roots)
        values.push_back(value(root));
      termLanes = 1;
      insertHere();
      Lanes around = std::exchange(lanes, {});
      Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, termLane, constant(0));
      emitWhere(arith::AndIOp::create(b, isFirst, isThere), [&] {
        lanes = around;
        for (auto [current, computed] : llvm::zip_equal(segment.stores, values))
          store(current, computed);
      });
    }
    lanes = {};
  };
  if (part.lanes == 1)
    return emitWhere(isThere, compute);
  // Whole warps go on, for their lanes wait for each other: what is not there is the last element, which is not stored.
  item = arith::SelectOp::create(b, isThere, item, constant(items - 1));
  emitWhere(arith::ConstantOp::create(b, b.getBoolAttr(true)), compute);
}

void GpuKernelEmitter::emitRows(const Part &part, Value block) {
  rowOfBlock = part.form == Form::BlockRows;
  int64_t units = 1;
  for (unsigned dim : nest->outer)
    units *= nest->space.size(dim);
  Value unit = block;
  if (!rowOfBlock) {
    unit = arith::MulIOp::create(b, block, i32(blockThreads / kWarp));
    unit = arith::AddIOp::create(b, unit, arith::ShRUIOp::create(b, thread, i32(5)));
  }
  unit = toI64(unit);
  auto rows = [&] {
    blockScopes = rowOfBlock ? scopes.size() : blockScopes;
    rowScopes = scopes.size();
    Value rest = unit;
    for (size_t i = nest->outer.size(); i-- > 0;) {
      Value at = rest;
      if (i > 0) {
        at = arith::RemUIOp::create(b, rest, constant(nest->space.size(nest->outer[i])));
        rest = arith::DivUIOp::create(b, rest, constant(nest->space.size(nest->outer[i])));
      }
      scopes.back().dims[nest->outer[i]] = at;
    }
    if (!nest->rows)
      return emitUnitRow(part);
    emitSegment(nest->initial, [&] { emitStores(nest->initial); });
    // Another thread may add to what this one cleared.
    barrier();
    emitCounted(constant(0), constant(nest->space.size(*nest->rows)), constant(1), {}, [&](Value row, ValueRange) {
      scopes.back().dims[*nest->rows] = row;
      blockScopes = rowScopes = scopes.size();
      emitUnitRow(part);
      return SmallVector<Value>();
    });
  };
  if (rowOfBlock || units % (blockThreads / kWarp) == 0) {
    // In a scope of its own, so that nothing with dimensions is taken for what all blocks share.
    emitWhere(arith::ConstantOp::create(b, b.getBoolAttr(true)), rows);
    return;
  }
  emitWhere(arith::CmpIOp::create(b, arith::CmpIPredicate::ult, unit, constant(units)), rows);
}

void GpuKernelEmitter::emitUnitRow(const Part &part) {
  SmallVector<const Expr *> roots = rootsOf(*part.nest);
  prepare(roots);
  // Before anything is stored: a result may take the place of an argument.
  SmallVector<Value> rowValues;
  for (const Nest::Store &rowStore : nest->rowStores)
    rowValues.push_back(value(rowStore.value));
  // A sum of one term reads its element without waiting for other threads, which may write in its place.
  if (llvm::any_of(roots, [](const Expr *root) { return root->reduceDepth > 0; }))
    emitRowBarrier();
  for (const Nest::Segment &segment : nest->segments)
    emitSegment(segment, [&] { emitStores(segment); });
  if (nest->rowStores.empty())
    return;
  // The same for what was read once per row.
  emitRowBarrier();
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rowOfBlock ? threadNumber : lane, constant(0));
  emitWhere(isFirst, [&] {
    for (auto [rowStore, rowValue] : llvm::zip_equal(nest->rowStores, rowValues))
      store(rowStore, rowValue);
  });
}

void GpuKernelEmitter::emitSegment(const Nest::Segment &segment, llvm::function_ref<void()> body) {
  int64_t size = nest->space.size(*segment.dim);
  int64_t vector = vectorOf(valuesOf(segment.stores), segment.stores, *segment.dim, size), whole = size - size % vector;
  int64_t threads = rowOfBlock ? blockThreads : kWarp;
  insertHere();
  Value own = rowOfBlock ? threadNumber : lane;
  auto emit = [&](int64_t from, int64_t to, int64_t count) {
    insertHere();
    Value first = arith::AddIOp::create(b, constant(from), arith::MulIOp::create(b, own, constant(count)));
    emitCounted(first, constant(to), constant(threads * count), {}, [&](Value at, ValueRange) {
      scopes.back().dims[*segment.dim] = at;
      lanes = {dimBit(*segment.dim), count, nullptr};
      body();
      lanes = {};
      return SmallVector<Value>();
    });
  };
  emit(0, whole, vector);
  if (whole < size)
    emit(whole, size, 1);
}

unsigned GpuKernelEmitter::alignmentOf(const Argument &argument, AffineExpr index) {
  int64_t bytes = bytesOf(argument.type.getElementType());
  if (lanes.dim == 0)
    return bytes;
  // The lanes begin at a multiple of their number.
  AffineExpr dim = getAffineDimExpr(llvm::countr_zero(lanes.dim), b.getContext());
  int64_t divisor = index.replace(dim, dim * lanes.count).getLargestKnownDivisor();
  int64_t known = divisor == 0 ? kArgumentAlignment : (divisor & -divisor) * bytes;
  return static_cast<unsigned>(std::min({known, kAccessBytes, kArgumentAlignment}));
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
  // What expansions of functions may use: as on a processor with fused multiply-add and instructions for bf16.
  const TargetCpu arithmetic{"gpu", "x86-64-v3", 128, true};
  OwningOpRef<func::FuncOp> own = kernel.clone();
  decomposeLayers(own->getBody().front());
  auto nests = planNests(*own);
  if (failed(nests))
    return failure();
  GpuKernel result;
  result.inPlace = findInPlacePairs(*own, *nests);
  result.module = ModuleOp::create(kernel.getLoc());
  auto grid = GpuKernelEmitter(*own, kernel.getLoc(), arithmetic).emit(*result.module, symbol, *nests);
  if (failed(grid) || failed(verify(*result.module)))
    return failure();
  result.grid = *grid;
  // A block does not wait for others, which may have written in its place.
  if (grid->blocks > 1)
    llvm::erase_if(result.inPlace, [&](auto pair) { return isReadByEachBlock(*nests, pair.second); });
  return result;
}
