//===- Epilogue.cpp - Epilogue of a matrix product, on one tile of it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Cpu/Epilogue.h"
#include "compiler/Codegen/Loops/VectorLoops.h"
#include "compiler/Codegen/Loops/VectorReductions.h"
#include "dialects/Graph/FusionRole.h"
#include "dialects/Program/ElementTypes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "types/computed_types.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

LogicalResult bowline::codegen::checkEpilogue(func::FuncOp epilogue) {
  ArrayRef<Type> arguments = epilogue.getArgumentTypes(), results = epilogue.getResultTypes();
  auto tile = arguments.empty() ? RankedTensorType() : dyn_cast<RankedTensorType>(arguments[0]);
  if (!tile || tile.getRank() != 2 || !tile.getElementType().isF32())
    return epilogue.emitOpError("the first argument of an epilogue is the product, a matrix of f32");
  if (results.empty())
    return epilogue.emitOpError("an epilogue has at least one result");
  int64_t rows = tile.getDimSize(0), columns = tile.getDimSize(1);
  for (Type type : llvm::concat<const Type>(arguments.drop_front(), results)) {
    if (!isComputedIn(getElementTypeOrSelf(type)))
      return epilogue.emitOpError("arguments and results of an epilogue are tensors of ")
             << NamesOf(&IsComputedIn) << ", got " << type;
  }
  for (Type type : arguments.drop_front()) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    if (!shape.empty() && shape != tile.getShape() && shape != ArrayRef(rows) && shape != ArrayRef(columns))
      return epilogue.emitOpError("an argument of an epilogue has the product's shape, one value per row or column, or "
                                  "one value, got ")
             << type;
  }
  for (Type type : results)
    if (cast<RankedTensorType>(type).getShape() != tile.getShape())
      return epilogue.emitOpError("a result of an epilogue has the product's shape, got ") << type;
  for (Operation &op : epilogue.getBody().front().without_terminator())
    if (!graph::canBeInEpilogue(&op))
      return op.emitOpError("cannot be part of an epilogue: it is not elementwise, a broadcast, or a constant with one "
                            "value for all elements");
  return success();
}

FailureOr<std::unique_ptr<Nest>> bowline::codegen::planEpilogue(func::FuncOp epilogue) {
  auto nest = std::make_unique<Nest>(epilogue.getContext());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(epilogue.getArgumentTypes()[0]).getShape();
  // IndexSpace leaves dimensions of size 1 out of indices. These two must stay: the loops over them run from the tile's
  // first row and column, which are arguments of the function.
  SmallVector<AffineExpr> point;
  for (int64_t size : shape)
    point.push_back(nest->space.dim(nest->space.addDim(std::max<int64_t>(size, 2))));
  nest->outer = {0};
  nest->units = shape[0];
  Nest::Segment segment{1u, {}};
  for (auto [i, result] : llvm::enumerate(epilogue.getBody().front().getTerminator()->getOperands())) {
    const Expr *value = nest->builder.elementOf(result, point);
    if (!value)
      return failure();
    segment.stores.push_back({static_cast<unsigned>(i), nest->space.linearize(point, shape), value});
  }
  nest->segments.push_back(std::move(segment));
  return nest;
}

SmallVector<std::pair<int, int>> bowline::codegen::findEpiloguePairs(func::FuncOp epilogue) {
  SmallVector<std::pair<int, int>> pairs;
  for (auto [output, result] : llvm::enumerate(epilogue.getResultTypes()))
    for (auto [i, extra] : llvm::enumerate(epilogue.getArgumentTypes().drop_front()))
      if (extra == result)
        pairs.emplace_back(output, i + 1);
  return pairs;
}

namespace {

/// Builds the function of an epilogue: loops over the rows of a tile, and over vectors whose last one is masked, for a
/// tile may end anywhere.
class EpilogueEmitter {
public:
  EpilogueEmitter(func::FuncOp epilogue, const TargetCpu &cpu) : frame(epilogue, epilogue.getLoc(), cpu) {
    values.setReductions(reductions);
  }

  LogicalResult emit(ModuleOp module, StringRef symbol, const Nest &planned);

private:
  /// Stores the elements of [from, to) in vectors of `count` lanes, the last one masked.
  void emitMaskedVectors(const Nest::Segment &segment, int64_t count, Value from, Value to);

  KernelFrame frame;
  KernelBuilder &b = frame.b;
  Scopes scopes{b};
  Indices indices{b, scopes};
  ElementMemory memory{frame, indices};
  Values values{frame, scopes, indices, memory};
  Prefetches prefetches{frame, scopes, indices, memory};
  VectorReductions reductions{frame, scopes, indices, values, prefetches};
  VectorLoops loops{frame, scopes, indices};
};

} // namespace

LogicalResult EpilogueEmitter::emit(ModuleOp module, StringRef symbol, const Nest &planned) {
  frame.nest = &planned;
  b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, pointer, i64, i64, i64, i64, i64});
  auto function = LLVM::LLVMFuncOp::create(b, symbol, type);
  Block *body = function.addEntryBlock(b);
  scopes.begin(body);
  Value stride = body->getArgument(2), firstRow = body->getArgument(3), lastRow = body->getArgument(4),
        firstColumn = body->getArgument(5), lastColumn = body->getArgument(6);
  FunctionType signature = frame.kernel.getFunctionType();
  frame.inputCount = signature.getNumInputs();

  // The address is moved back from the tile's first element to that of the product, so that rows and columns of the
  // product are indices into it.
  Value origin = arith::SubIOp::create(
      b, b.constant(0), arith::AddIOp::create(b, arith::MulIOp::create(b, firstRow, stride), firstColumn));
  Value tile = LLVM::GEPOp::create(b, pointer, b.getF32Type(), body->getArgument(1), ArrayRef<LLVM::GEPArg>{origin});
  frame.arguments.push_back({tile, cast<RankedTensorType>(signature.getInput(0)), stride});
  for (Type tensor : llvm::concat<const Type>(signature.getInputs().drop_front(), signature.getResults())) {
    Value slot = LLVM::GEPOp::create(b, pointer, pointer, body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(frame.arguments.size()) - 1});
    frame.arguments.push_back({LLVM::LoadOp::create(b, pointer, slot), cast<RankedTensorType>(tensor)});
  }

  const Nest::Segment &segment = frame.nest->segments[0];
  int64_t count = std::max<int64_t>(loops.lanesOf(segment), 2);
  Value columns = arith::SubIOp::create(b, lastColumn, firstColumn);
  Value rest = arith::RemSIOp::create(b, columns, b.constant(count));
  Value whole = arith::SubIOp::create(b, lastColumn, rest);
  scopes.emitLoop(frame.nest->outer[0], firstRow, lastRow, 1, {}, [&](ValueRange) {
    loops.emitVectors(segment, count, firstColumn, whole, [&] { values.emitStores(segment.stores); });
    emitMaskedVectors(segment, count, whole, lastColumn);
    return SmallVector<Value>();
  });
  LLVM::ReturnOp::create(b, ValueRange());
  return failure(frame.unsupported);
}

void EpilogueEmitter::emitMaskedVectors(const Nest::Segment &segment, int64_t count, Value from, Value to) {
  scopes.emitLoop(*segment.dim, from, to, count, {}, [&](ValueRange) {
    scopes.insertHere();
    Value rest =
        arith::TruncIOp::create(b, b.getI32Type(), arith::SubIOp::create(b, to, scopes.dimValue(*segment.dim)));
    SmallVector<int32_t> numbers = llvm::to_vector(llvm::seq<int32_t>(0, count));
    auto type = VectorType::get({count}, b.getI32Type());
    Value lane = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
    Value bound = vector::BroadcastOp::create(b, type, rest);
    indices.lanes = {dimBit(*segment.dim), count, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane, bound)};
    values.emitStores(segment.stores);
    indices.lanes = {};
    return SmallVector<Value>();
  });
}

LogicalResult bowline::codegen::emitEpilogue(ModuleOp module, StringRef symbol, func::FuncOp epilogue, const Nest &nest,
                                             const TargetCpu &cpu) {
  return EpilogueEmitter(epilogue, cpu).emit(module, symbol, nest);
}
