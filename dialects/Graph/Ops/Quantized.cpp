//===- Quantized.cpp - quantized_dot, quantized_gather
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/LocalParts.h"
#include "types/block_formats.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LogicalResult bowline::graph::checkBlocks(std::optional<Location> loc, RankedTensorType type, StringRef format) {
  std::optional<ElementType> blocks = BlockFormatFromName(std::string_view(format));
  if (!blocks)
    return emitOptionalError(loc, "there is no format '", format, "' of blocks; use one of ", BlockFormatNames());
  if (type.getRank() != 3 || type.getDimSize(2) != InfoOf(*blocks).block_bytes)
    return emitOptionalError(loc, "a matrix of format '", format, "' has three dimensions, the last one of ",
                             InfoOf(*blocks).block_bytes, " bytes, got ", type);
  return success();
}

static int64_t elementsOfBlock(StringRef format) {
  return InfoOf(*BlockFormatFromName(std::string_view(format))).block_elements;
}

/// Row `row` of a matrix in blocks, as numbers of `arithmetic`.
static std::vector<double> readRow(const HostTensor &matrix, int64_t row, StringRef format,
                                   const Arithmetic &arithmetic) {
  int64_t blocks = matrix.shape[1], bytes = matrix.shape[2], elements = elementsOfBlock(format);
  std::vector<uint8_t> stored(blocks * bytes);
  for (auto [index, byte] : llvm::enumerate(stored))
    byte = static_cast<uint8_t>(matrix.data[row * blocks * bytes + static_cast<int64_t>(index)]);
  std::vector<float> values(blocks * elements);
  ReadBlocks(*BlockFormatFromName(std::string_view(format)), stored.data(), blocks, values.data());
  std::vector<double> numbers;
  for (float value : values)
    numbers.push_back(arithmetic.number(value));
  return numbers;
}

//===----------------------------------------------------------------------===//
// QuantizedDotOp
//===----------------------------------------------------------------------===//

LogicalResult QuantizedDotOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                               SmallVectorImpl<Type> &results) {
  RankedTensorType lhs = tensorType(adaptor.getLhs()), matrix = tensorType(adaptor.getMatrix());
  if (failed(checkBlocks(loc, matrix, adaptor.getFormat())))
    return failure();
  if (lhs.getRank() == 0 || lhs.getShape().back() != matrix.getDimSize(1) * elementsOfBlock(adaptor.getFormat()))
    return emitOptionalError(loc, "a row of the matrix has ",
                             matrix.getDimSize(1) * elementsOfBlock(adaptor.getFormat()),
                             " elements, and so must have one of ", lhs);
  SmallVector<int64_t> shape(lhs.getShape());
  shape.back() = matrix.getDimSize(0);
  results.push_back(lhs.clone(shape));
  return success();
}

LogicalResult QuantizedDotOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const Arithmetic &arithmetic) {
  const HostTensor &lhs = operands[0], &matrix = operands[1];
  int64_t width = lhs.shape.back(), columns = matrix.shape[0], rows = lhs.count() / width;
  SmallVector<int64_t> along = llvm::to_vector(llvm::seq<int64_t>(0, width));
  for (int64_t column = 0; column < columns; ++column) {
    std::vector<double> weights = readRow(matrix, column, getFormat(), arithmetic);
    for (int64_t row = 0; row < rows; ++row)
      results[0].data[row * columns + column] =
          arithmetic.sumOfProducts(&lhs.data[row * width], along, weights.data(), along);
  }
  return success();
}

FactorRule QuantizedDotOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  RankedTensorType matrix = tensorType(getMatrix());
  FactorRule::TensorFactors rows = rule.addDims(tensorType(getLhs()).getShape().drop_back());
  int64_t columns = rule.add(matrix.getDimSize(0));
  int64_t blocks = rule.add(matrix.getDimSize(1), Kind::Reduction, ReduceKind::Sum);
  int64_t inBlock = rule.add(elementsOfBlock(getFormat()), Kind::Blocked);
  int64_t bytes = rule.add(matrix.getDimSize(2), Kind::Blocked);
  FactorRule::TensorFactors lhs = rows, result = rows;
  lhs.push_back({blocks, inBlock});
  result.push_back({columns});
  rule.operands = {lhs, {{columns}, {blocks}, {bytes}}};
  rule.results = {result};
  return rule;
}

double QuantizedDotOp::flops() {
  RankedTensorType lhs = tensorType(getLhs());
  return 2.0 * static_cast<double>(lhs.getNumElements()) * static_cast<double>(tensorType(getMatrix()).getDimSize(0));
}

StringRef QuantizedDotOp::kernelName() { return "quantized_matmul"; }

DictionaryAttr QuantizedDotOp::kernelConfig(bool) {
  return KernelConfig(getContext()).text("format", getFormat()).get();
}

/// The kernel has matrices, [M, K] and [M, N].
void QuantizedDotOp::prepareForKernel(OpBuilder &builder) {
  RankedTensorType lhs = tensorType(getLhs());
  if (lhs.getRank() == 2)
    return;
  ImplicitLocOpBuilder b(getLoc(), builder);
  int64_t width = lhs.getShape().back();
  Value rows = ReshapeOp::create(b, lhs.clone({lhs.getNumElements() / width, width}), getLhs());
  Value product = QuantizedDotOp::create(b, rows, getMatrix(), getFormat()).getResult();
  getResult().replaceAllUsesWith(ReshapeOp::create(b, getType(), product));
  erase();
}

LogicalResult QuantizedDotOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                              SmallVectorImpl<Value> &results) {
  results.push_back(QuantizedDotOp::create(builder, operands[0], operands[1], use.text("format")).getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// QuantizedGatherOp
//===----------------------------------------------------------------------===//

LogicalResult QuantizedGatherOp::verify() {
  RankedTensorType table = tensorType(getTable());
  if (failed(checkBlocks(getLoc(), table, getFormat())))
    return failure();
  SmallVector<int64_t> shape(tensorType(getIndices()).getShape());
  shape.push_back(table.getDimSize(1) * elementsOfBlock(getFormat()));
  if (tensorType(getResult()).getShape() != ArrayRef<int64_t>(shape))
    return emitOpError("gives rows of ") << shape.back() << " elements, one for each index, not "
                                         << getResult().getType();
  return success();
}

LogicalResult QuantizedGatherOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                           const Arithmetic &arithmetic) {
  const HostTensor &table = operands[0], &indices = operands[1];
  int64_t width = results[0].shape.back();
  for (auto [place, index] : llvm::enumerate(indices.data)) {
    if (index < 0 || index >= static_cast<double>(table.shape[0]))
      return emitOpError("index ") << static_cast<int64_t>(index) << " is outside of the table's " << table.shape[0]
                                   << " rows";
    std::vector<double> row = readRow(table, static_cast<int64_t>(index), getFormat(), arithmetic);
    std::copy(row.begin(), row.end(), results[0].data.begin() + static_cast<int64_t>(place) * width);
  }
  return success();
}

FactorRule QuantizedGatherOp::factorRule() {
  using Kind = FactorRule::Kind;
  FactorRule rule;
  RankedTensorType table = tensorType(getTable());
  FactorRule::TensorFactors indices = rule.addDims(tensorType(getIndices()).getShape());
  // A shard of the table gives zeros for the rows that it does not have.
  int64_t rows = rule.add(table.getDimSize(0), Kind::Reduction, ReduceKind::Sum);
  // Pieces of a row would be pieces of the whole table, where the table is whole; rows that were read are divided
  // instead.
  int64_t blocks = rule.add(table.getDimSize(1), Kind::Blocked);
  int64_t inBlock = rule.add(elementsOfBlock(getFormat()), Kind::Blocked);
  int64_t bytes = rule.add(table.getDimSize(2), Kind::Blocked);
  FactorRule::TensorFactors result = indices;
  result.push_back({blocks, inBlock});
  rule.operands = {{{rows}, {blocks}, {bytes}}, indices};
  rule.results = {result};
  return rule;
}

void QuantizedGatherOp::localize(LocalContext &context) {
  if (LocalContext::Axes axes = context.axesOf(getTable(), 0); !axes.empty())
    localizeRowsOf(*this, getIndicesMutable(), /*inRange=*/true, context, axes, tensorType(getTable()).getDimSize(0));
}

double QuantizedGatherOp::flops() { return static_cast<double>(tensorType(getResult()).getNumElements()); }

/// The operation reads only the rows of the table that it gives.
double QuantizedGatherOp::bytesRead(unsigned operand) {
  RankedTensorType table = tensorType(getTable());
  if (operand != 0)
    return byteCount(getIndices().getType());
  return static_cast<double>(tensorType(getIndices()).getNumElements() * table.getDimSize(1) * table.getDimSize(2));
}

StringRef QuantizedGatherOp::kernelName() { return "quantized_gather"; }

DictionaryAttr QuantizedGatherOp::kernelConfig(bool) {
  return KernelConfig(getContext()).text("format", getFormat()).get();
}

/// The kernel has indices [T].
void QuantizedGatherOp::prepareForKernel(OpBuilder &builder) {
  RankedTensorType indices = tensorType(getIndices()), result = tensorType(getResult());
  if (indices.getRank() == 1)
    return;
  ImplicitLocOpBuilder b(getLoc(), builder);
  Value flat = ReshapeOp::create(b, indices.clone({indices.getNumElements()}), getIndices());
  int64_t shape[] = {indices.getNumElements(), result.getShape().back()};
  Value rows = QuantizedGatherOp::create(b, result.clone(shape), getTable(), flat, getFormat());
  getResult().replaceAllUsesWith(ReshapeOp::create(b, result, rows));
  erase();
}

LogicalResult QuantizedGatherOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use,
                                                 ValueRange operands, SmallVectorImpl<Value> &results) {
  results.push_back(
      QuantizedGatherOp::create(builder, use.results[0], operands[0], operands[1], use.text("format")).getResult());
  return success();
}
