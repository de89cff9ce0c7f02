//===- OpSupport.cpp - Shared by the operations' definitions
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "dialects/Graph/AssemblyDirectives.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace bowline::graph {

llvm::SmallVector<int64_t> otherDims(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> result;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      result.push_back(dim);
  return result;
}

llvm::SmallVector<int64_t> withoutDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> result;
  for (int64_t dim : otherDims(shape.size(), dims))
    result.push_back(shape[dim]);
  return result;
}

LogicalResult checkDims(std::optional<Location> loc, StringRef what, ArrayRef<int64_t> dims, int64_t rank,
                        bool increasing) {
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (dim < 0 || dim >= rank)
      return emitOptionalError(loc, what, " dimension ", dim, " is out of range for a tensor of rank ", rank);
    if (increasing && i > 0 && dims[i - 1] >= dim)
      return emitOptionalError(loc, what, " dimensions must be strictly increasing");
    if (llvm::is_contained(dims.take_front(i), dim))
      return emitOptionalError(loc, what, " dimension ", dim, " is named twice");
  }
  return success();
}

Type statisticsType(Type elementType) {
  return elementType.isF64() ? elementType : Type(Float32Type::get(elementType.getContext()));
}

Value constantLike(ImplicitLocOpBuilder &builder, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  TypedAttr element = isa<FloatType>(tensor.getElementType())
                          ? TypedAttr(builder.getFloatAttr(tensor.getElementType(), value))
                          : TypedAttr(builder.getIntegerAttr(tensor.getElementType(), static_cast<int64_t>(value)));
  return arith::ConstantOp::create(builder, DenseElementsAttr::get(tensor, element));
}

Value sumOver(ImplicitLocOpBuilder &builder, Value input, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return input;
  return ReduceOp::create(builder, ReduceKind::Sum, input, dims);
}

Value broadcastAlong(ImplicitLocOpBuilder &builder, Value value, RankedTensorType type, ArrayRef<int64_t> newDims) {
  if (newDims.empty())
    return value;
  auto resultType = RankedTensorType::get(type.getShape(), tensorType(value).getElementType());
  return BroadcastOp::create(builder, resultType, value, otherDims(type.getRank(), newDims));
}

static ParseResult parseDimensionPairs(OpAsmParser &parser, StringRef keyword, DenseI64ArrayAttr &lhs,
                                       DenseI64ArrayAttr &rhs) {
  MLIRContext *context = parser.getContext();
  if (failed(parser.parseOptionalKeyword(keyword))) {
    lhs = rhs = DenseI64ArrayAttr::get(context, {});
    return success();
  }
  auto parseList = [&](DenseI64ArrayAttr &list) -> ParseResult {
    list = dyn_cast_or_null<DenseI64ArrayAttr>(DenseI64ArrayAttr::parse(parser, Type()));
    return success(static_cast<bool>(list));
  };
  return failure(parseList(lhs) || parser.parseKeyword("x") || parseList(rhs));
}

static void printDimensionPairs(OpAsmPrinter &printer, StringRef keyword, DenseI64ArrayAttr lhs,
                                DenseI64ArrayAttr rhs) {
  printer << keyword << ' ';
  lhs.print(printer);
  printer << " x ";
  rhs.print(printer);
}

ParseResult parsePairedDimensions(OpAsmParser &parser, DenseI64ArrayAttr &lhsBatch, DenseI64ArrayAttr &rhsBatch,
                                  DenseI64ArrayAttr &lhsContract, DenseI64ArrayAttr &rhsContract) {
  return failure(parseDimensionPairs(parser, "batch", lhsBatch, rhsBatch) ||
                 parseDimensionPairs(parser, "contract", lhsContract, rhsContract));
}

void printPairedDimensions(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr lhsBatch, DenseI64ArrayAttr rhsBatch,
                           DenseI64ArrayAttr lhsContract, DenseI64ArrayAttr rhsContract) {
  bool hasBatch = !lhsBatch.empty() || !rhsBatch.empty();
  bool hasContract = !lhsContract.empty() || !rhsContract.empty();
  if (hasBatch)
    printDimensionPairs(printer, "batch", lhsBatch, rhsBatch);
  if (hasBatch && hasContract)
    printer << ' ';
  if (hasContract || !hasBatch)
    printDimensionPairs(printer, "contract", lhsContract, rhsContract);
}

bool isStaticAndNotEmpty(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && !llvm::is_contained(tensor.getShape(), 0);
}

} // namespace bowline::graph
