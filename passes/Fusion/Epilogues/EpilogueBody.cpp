//===- EpilogueBody.cpp - The function of a contraction's epilogue
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/EpilogueBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace bowline;

namespace {

/// Clones a fusion's body with two dimensions for all.
class BodyFlattener {
public:
  BodyFlattener(graph::FusionOp fusion)
      : body(fusion.getBody().front()), contraction(fusion.getContraction()), product(contraction->getResult(0)),
        rowDims(*cast<graph::KernelModel>(contraction).epilogueRowDims()) {
    ArrayRef<int64_t> shape = graph::tensorType(product).getShape();
    for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim)
      (dim < rowDims ? rows : columns) *= shape[dim];
  }

  func::FuncOp build(OpBuilder &builder, StringRef name) {
    SmallVector<Type> inputs{RankedTensorType::get({rows, columns}, builder.getF32Type())}, outputs;
    for (BlockArgument argument : epilogueArguments())
      inputs.push_back(flatArgument(argument));
    for (Value output : body.getTerminator()->getOperands())
      outputs.push_back(flat(output));
    auto function =
        func::FuncOp::create(builder, builder.getUnknownLoc(), name, builder.getFunctionType(inputs, outputs));
    Block *entry = function.addEntryBlock();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    mapping.map(product, roundedProduct(builder, entry->getArgument(0)));
    for (auto [before, after] : llvm::zip_equal(epilogueArguments(), entry->getArguments().drop_front()))
      mapping.map(before, after);
    for (Operation &op : llvm::drop_begin(body.without_terminator()))
      clone(builder, op);
    SmallVector<Value> results =
        llvm::map_to_vector(body.getTerminator()->getOperands(), [&](Value value) { return mapping.lookup(value); });
    func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
    return function;
  }

private:
  ArrayRef<BlockArgument> epilogueArguments() { return body.getArguments().drop_front(contraction->getNumOperands()); }

  RankedTensorType flat(Value value) { return graph::tensorType(value).clone({rows, columns}); }

  /// An argument that is repeated has the shape of a row, a column or a single value.
  RankedTensorType flatArgument(BlockArgument argument) {
    RankedTensorType type = graph::tensorType(argument);
    if (type.getShape() == graph::tensorType(product).getShape())
      return flat(argument);
    return type.getRank() == 0 ? type : type.clone({type.getNumElements()});
  }

  /// The epilogue is given the sum before it is rounded.
  Value roundedProduct(OpBuilder &builder, Value tile) {
    RankedTensorType wanted = flat(product);
    return wanted == tile.getType() ? tile : arith::TruncFOp::create(builder, product.getLoc(), wanted, tile);
  }

  void clone(OpBuilder &builder, Operation &op) {
    if (graph::isRepetition(&op)) {
      SmallVector<int64_t> dims = graph::repeatedDims(&op);
      if (!dims.empty())
        dims = {dims.front() < rowDims ? 0 : 1};
      Value input = mapping.lookup(op.getOperand(0)), result = op.getResult(0);
      mapping.map(result, graph::BroadcastOp::create(builder, op.getLoc(), flat(result), input, dims).getResult());
      return;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto value = cast<SplatElementsAttr>(constant.getValue()).resizeSplat(flat(constant.getResult()));
      mapping.map(constant.getResult(), arith::ConstantOp::create(builder, op.getLoc(), value).getResult());
      return;
    }
    Operation *copy = builder.clone(op, mapping);
    copy->getResult(0).setType(flat(op.getResult(0)));
  }

  Block &body;
  Operation *contraction;
  Value product;
  int64_t rowDims, rows = 1, columns = 1;
  IRMapping mapping;
};

} // namespace

func::FuncOp bowline::buildEpilogueBody(OpBuilder &builder, StringRef name, graph::FusionOp fusion) {
  return BodyFlattener(fusion).build(builder, name);
}
