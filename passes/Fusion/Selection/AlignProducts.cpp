//===- AlignProducts.cpp - Rows of matrices begin where wide loads do
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Graph/PaddingContext.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Fusion/Passes.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace bowline {
#define GEN_PASS_DEF_ALIGNPRODUCTS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class AlignProducts : public bowline::impl::AlignProductsBase<AlignProducts> {
public:
  using AlignProductsBase::AlignProductsBase;

  void runOnProgram() override {
    if (rowBytes < 1 || multiple < 1) {
      getOperation().emitError("align-products: row-bytes and multiple must be at least 1, got ")
          << rowBytes.getValue() << " and " << multiple.getValue();
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<graph::FuncOp>()) {
      padded.clear();
      masked.clear();
      Block &body = function.getBody().front();
      // By name: this is the product that libraries compute, and align() knows how its operands grow together.
      for (auto product : llvm::to_vector(body.getOps<graph::DotGeneralOp>()))
        align(product);
      // Where ranks divide the classes, a label may be one more than the last class.
      if (dist::MeshOp mesh = dist::MeshOp::of(getOperation()); mesh && mesh.getRankCount() > 1)
        continue;
      // By name: this loss and its gradient alone have absent classes.
      for (auto loss : llvm::to_vector(body.getOps<graph::SoftmaxCrossEntropyOp>()))
        if (Value logits = withAbsentClasses(loss.getLogits()))
          loss.getLogitsMutable().assign(logits);
      // By name: as above.
      for (auto gradient : llvm::to_vector(body.getOps<graph::SoftmaxCrossEntropyGradOp>()))
        if (Value logits = withAbsentClasses(gradient.getLogits()))
          widen(gradient, logits);
    }
  }

private:
  /// Sizes of the dimensions of both operands and of the result.
  struct Sizes {
    SmallVector<int64_t> lhs, rhs, result;
  };

  /// Whether the rows of `type` begin at addresses that wide loads cannot use.
  bool isMisaligned(Type type) const {
    auto tensor = cast<RankedTensorType>(type);
    int64_t last = tensor.getRank() == 0 ? 0 : tensor.getShape().back();
    int64_t bytes = last * tensor.getElementTypeBitWidth() / 8;
    return tensor.getRank() > 1 && last >= minSize && bytes % rowBytes != 0;
  }

  void align(graph::DotGeneralOp product) {
    auto lhs = cast<RankedTensorType>(product.getLhs().getType()),
         rhs = cast<RankedTensorType>(product.getRhs().getType()), result = cast<RankedTensorType>(product.getType());
    Sizes sizes{llvm::to_vector(lhs.getShape()), llvm::to_vector(rhs.getShape()), llvm::to_vector(result.getShape())};
    SmallVector<int64_t> lhsFree = product.getLhsFree(), rhsFree = product.getRhsFree();
    int64_t batch = static_cast<int64_t>(product.getLhsBatch().size());
    auto grow = [&](int64_t &size) { size = static_cast<int64_t>(llvm::alignTo(size, multiple)); };
    // A dimension that is free grows in the result too, one that is contracted in the other operand.
    auto growLhs = [&](int64_t dim) {
      grow(sizes.lhs[dim]);
      if (auto it = llvm::find(product.getLhsContract(), dim); it != product.getLhsContract().end())
        sizes.rhs[product.getRhsContract()[it - product.getLhsContract().begin()]] = sizes.lhs[dim];
      else
        sizes.result[batch + (llvm::find(lhsFree, dim) - lhsFree.begin())] = sizes.lhs[dim];
    };
    auto growRhs = [&](int64_t dim) {
      grow(sizes.rhs[dim]);
      if (auto it = llvm::find(product.getRhsContract(), dim); it != product.getRhsContract().end())
        sizes.lhs[product.getLhsContract()[it - product.getRhsContract().begin()]] = sizes.rhs[dim];
      else
        sizes.result[batch + lhsFree.size() + (llvm::find(rhsFree, dim) - rhsFree.begin())] = sizes.rhs[dim];
    };
    bool changes = false;
    if (isMisaligned(lhs) && !llvm::is_contained(product.getLhsBatch(), lhs.getRank() - 1))
      growLhs(lhs.getRank() - 1), changes = true;
    if (isMisaligned(rhs) && !llvm::is_contained(product.getRhsBatch(), rhs.getRank() - 1))
      growRhs(rhs.getRank() - 1), changes = true;
    if (isMisaligned(result) && sizes.result.back() == result.getShape().back()) {
      if (!rhsFree.empty())
        growRhs(rhsFree.back()), changes = true;
      else if (!lhsFree.empty())
        growLhs(lhsFree.back()), changes = true;
    }
    if (!changes)
      return;
    ImplicitLocOpBuilder b(product.getLoc(), product);
    Value whole = graph::DotGeneralOp::create(b, RankedTensorType::get(sizes.result, result.getElementType()),
                                              pad(b, product.getLhs(), sizes.lhs), pad(b, product.getRhs(), sizes.rhs),
                                              product.getLhsBatch(), product.getRhsBatch(), product.getLhsContract(),
                                              product.getRhsContract());
    if (ArrayRef(sizes.result) != result.getShape())
      whole = graph::SliceOp::create(b, whole, SmallVector<int64_t>(result.getRank(), 0), result.getShape());
    product.replaceAllUsesWith(whole);
    product.erase();
  }

  /// `value` with zeros at the ends, once for all products that read it.
  Value pad(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> to) {
    ArrayRef<int64_t> from = cast<RankedTensorType>(value.getType()).getShape();
    if (from == to)
      return value;
    Value &known = padded[{value.getAsOpaquePointer(), std::vector<int64_t>(to.begin(), to.end())}];
    if (!known) {
      SmallVector<int64_t> high;
      for (auto [before, after] : llvm::zip_equal(from, to))
        high.push_back(after - before);
      known = graph::PadOp::create(b, value, SmallVector<int64_t>(from.size(), 0), high);
    }
    return known;
  }

  /// If `logits` are a product without its last classes, as align() leaves out those that it added, the whole product,
  /// with logits of these classes so low that they contribute nothing; else null.
  Value withAbsentClasses(Value logits) {
    // By name: align() puts this slice behind a product.
    auto slice = logits.getDefiningOp<graph::SliceOp>();
    // By name: as above.
    if (!slice || !slice.getInput().getDefiningOp<graph::DotGeneralOp>())
      return {};
    // A slice of the program itself is treated alike if it leaves out no more classes than align() could have added:
    // the loss of many additional classes costs more than the slice.
    if (llvm::any_of(slice.getOffsets(), [](int64_t offset) { return offset != 0; }))
      return {};
    auto all = cast<RankedTensorType>(slice.getInput().getType()), own = cast<RankedTensorType>(slice.getType());
    int64_t classes = own.getShape().back();
    if (all.getShape().drop_back() != own.getShape().drop_back() || all.getShape().back() - classes >= multiple)
      return {};
    Value &known = masked[{slice.getInput().getAsOpaquePointer(), classes}];
    if (known)
      return known;
    // Other losses with as many classes may come before this slice, but not before the product.
    ImplicitLocOpBuilder b(slice.getLoc(), slice);
    b.setInsertionPointAfterValue(slice.getInput());
    RankedTensorType indices = all.clone(b.getI32Type());
    int64_t last = all.getRank() - 1;
    Value index = graph::IotaOp::create(b, RankedTensorType::get({all.getShape().back()}, b.getI32Type()), 0);
    index = graph::BroadcastOp::create(b, indices, index, ArrayRef<int64_t>{last});
    auto count = b.getI32IntegerAttr(static_cast<int32_t>(classes));
    Value end = arith::ConstantOp::create(b, DenseElementsAttr::get(indices, Attribute(count)));
    auto low = b.getFloatAttr(all.getElementType(), graph::absentLogit(all.getElementType()));
    Value absent = arith::ConstantOp::create(b, DenseElementsAttr::get(all, Attribute(low)));
    Value isClass = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, end);
    return known = arith::SelectOp::create(b, isClass, slice.getInput(), absent);
  }

  /// The gradient of absent classes is zero, as it is in the padded operand that align() gave the products.
  void widen(graph::SoftmaxCrossEntropyGradOp gradient, Value logits) {
    ImplicitLocOpBuilder b(gradient.getLoc(), gradient);
    auto wide = graph::SoftmaxCrossEntropyGradOp::create(b, logits, gradient.getLabels(), gradient.getLogsumexp(),
                                                         gradient.getLossGrad());
    auto addsClassesAtTheEnd = [&](graph::PadOp pad) {
      return pad.getType() == wide.getType() && llvm::all_of(pad.getLow(), [](int64_t low) { return low == 0; });
    };
    // By name: align() puts this pad in front of a product.
    for (Operation *user : llvm::make_early_inc_range(gradient->getUsers()))
      if (auto pad = dyn_cast<graph::PadOp>(user); pad && addsClassesAtTheEnd(pad)) {
        pad.replaceAllUsesWith(wide.getResult());
        pad.erase();
      }
    if (!gradient->use_empty()) {
      ArrayRef<int64_t> sizes = cast<RankedTensorType>(gradient.getType()).getShape();
      Value own = graph::SliceOp::create(b, wide.getResult(), SmallVector<int64_t>(sizes.size(), 0), sizes);
      gradient.replaceAllUsesWith(own);
    }
    gradient.erase();
  }

  std::map<std::pair<void *, std::vector<int64_t>>, Value> padded;
  /// By product and number of classes.
  std::map<std::pair<void *, int64_t>, Value> masked;
};

} // namespace
