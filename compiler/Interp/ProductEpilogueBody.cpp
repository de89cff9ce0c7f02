//===- ProductEpilogueBody.cpp - Graph operations of a library's product epilogue
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/ProductEpilogueBody.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline;

namespace {

class EpilogueBuilder {
public:
  EpilogueBuilder(ImplicitLocOpBuilder &builder, const graph::KernelUse &use, Value product)
      : b(builder), use(use), matrix(cast<RankedTensorType>(product.getType())) {}

  Value reshaped(Value value, ArrayRef<int64_t> shape) {
    return graph::ReshapeOp::create(b, cast<RankedTensorType>(value.getType()).clone(shape), value);
  }
  /// `value` as a tensor [shape] in f32.
  Value wide(Value value, ArrayRef<int64_t> shape) {
    Value tensor = reshaped(value, shape);
    return getElementTypeOrSelf(tensor).isF32() ? tensor
                                                : arith::ExtFOp::create(b, matrix.clone(shape), tensor).getResult();
  }
  Value withBias(Value product, Value bias) {
    int64_t columns = matrix.getDimSize(1);
    Value rows = graph::BroadcastOp::create(b, matrix, wide(bias, columns), ArrayRef<int64_t>{1});
    return arith::AddFOp::create(b, product, rows);
  }
  graph::GeluOp gelu(Value x) { return graph::GeluOp::create(b, x.getType(), graph::GeluKind::Tanh, x); }
  FailureOr<Value> gradient(Value product, Value input) {
    Value x = wide(input, matrix.getShape());
    SmallVector<Value> gradients(1);
    if (failed(cast<graph::Differentiable>(gelu(x).getOperation()).buildVjp(b, product, gradients)))
      return failure();
    return gradients[0];
  }
  /// Over k, of A or of B.
  Value sums(char of, Value operand) {
    bool ofA = of == 'a';
    int64_t count = ofA ? use.integer("m") : use.integer("n"), k = use.integer("k");
    ArrayRef<int64_t> strides = use.integers(ofA ? "a_strides" : "b_strides");
    bool isLastK = ofA ? strides[2] == 1 || k == 1 : strides[1] == 1 || k == 1;
    Value tensor = isLastK ? wide(operand, {count, k}) : wide(operand, {k, count});
    return graph::ReduceOp::create(b, graph::ReduceKind::Sum, tensor, ArrayRef<int64_t>{isLastK ? 1 : 0});
  }
  /// Stores `value` as the next result of the kernel.
  void store(Value value, SmallVectorImpl<Value> &results) {
    RankedTensorType type = use.results[results.size()];
    Value tensor = reshaped(value, type.getShape());
    results.push_back(type == tensor.getType() ? tensor : arith::TruncFOp::create(b, type, tensor).getResult());
  }

private:
  ImplicitLocOpBuilder &b;
  const graph::KernelUse &use;
  RankedTensorType matrix; ///< [m, n] in f32
};

} // namespace

const kernels::ProductEpilogue *bowline::libraryEpilogueOf(DictionaryAttr config) {
  auto name = config ? config.getAs<StringAttr>(StringRef(kernels::kEpilogue)) : StringAttr();
  return name ? kernels::FindProductEpilogue(std::string_view(name.getValue())) : nullptr;
}

LogicalResult bowline::buildProductEpilogue(ImplicitLocOpBuilder &builder, const graph::KernelUse &use,
                                            const kernels::ProductEpilogue &epilogue, Value product,
                                            ValueRange operands, SmallVectorImpl<Value> &results) {
  size_t reads = 2 + (epilogue.bias ? 1 : 0) + (epilogue.gradient ? 1 : 0);
  size_t writes = 1 + (epilogue.keeps ? 1 : 0) + (epilogue.sums ? 1 : 0);
  if (operands.size() != reads || use.results.size() != writes)
    return failure();
  EpilogueBuilder build(builder, use, product);
  Value x = epilogue.bias ? build.withBias(product, operands[2]) : product, y = x;
  if (epilogue.gelu)
    y = build.gelu(x);
  if (epilogue.gradient) {
    FailureOr<Value> gradient = build.gradient(x, operands.back());
    if (failed(gradient))
      return failure();
    y = *gradient;
  }
  build.store(y, results);
  if (epilogue.keeps)
    build.store(x, results);
  if (epilogue.sums)
    build.store(build.sums(epilogue.sums, operands[epilogue.sums == 'a' ? 0 : 1]), results);
  return success();
}
