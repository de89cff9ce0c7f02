//===- Generation.cpp - iota, random
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "kernels/registry/philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

LogicalResult IotaOp::verify() {
  return checkDims(getLoc(), "counted", static_cast<int64_t>(getDim()), tensorType(getResult()).getRank(),
                   /*increasing=*/true);
}

LogicalResult IotaOp::interpret(ArrayRef<HostTensor>, MutableArrayRef<HostTensor> results, const Arithmetic &) {
  int64_t next = 0;
  forEachIndex(results[0].shape, [&](const std::vector<int64_t> &index) { results[0].data[next++] = index[getDim()]; });
  return success();
}

FactorRule IotaOp::factorRule() { return alignedRule(*this); }

double IotaOp::flops() { return 0; }

FusionRole IotaOp::fusionRole() { return FusionRole::Alone; }

Element IotaOp::elementAt(ElementBuilder &elements, ArrayRef<AffineExpr> index) {
  return elements.number(getType().getElementType(), index[getDim()]);
}

// Counts from the first index of this rank's shard.
void IotaOp::localize(LocalContext &context) {
  LocalContext::Axes axes = context.axesOf(getResult(), getDim());
  if (axes.empty())
    return;
  ImplicitLocOpBuilder builder(getLoc(), getContext());
  builder.setInsertionPointAfter(*this);
  RankedTensorType type = getType();
  Value place = context.placeAlong(builder, axes);
  Value first = arith::MulIOp::create(
      builder, place, constantLike(builder, place.getType(), static_cast<double>(type.getDimSize(getDim()))));
  Value firsts = BroadcastOp::create(builder, type, first, ArrayRef<int64_t>{});
  auto sum = arith::AddIOp::create(builder, getResult(), firsts);
  context.replace(getResult(), sum, llvm::SmallPtrSet<Operation *, 1>{sum});
}

LogicalResult RandomOp::verify() {
  if (!getStddev().isFinite() || getStddev().isNegative())
    return emitOpError("the standard deviation must be finite and not negative");
  if (getPlaces().size() != getShardedDims().size() || (!getPlaces().empty() && !getWhole()))
    return emitOpError("needs one place per sharded dimension, and the whole shape where there are any");
  if (!getWhole())
    return success();
  RankedTensorType type = tensorType(getResult());
  if (static_cast<int64_t>(getWhole()->size()) != type.getRank())
    return emitOpError("is a shard of a tensor of rank ") << getWhole()->size() << ", but has rank " << type.getRank();
  if (failed(checkDims(getLoc(), "sharded", getShardedDims(), type.getRank(), /*increasing=*/true)))
    return failure();
  int64_t elements = 1;
  for (auto [dim, whole, shard] : llvm::enumerate(*getWhole(), type.getShape())) {
    if (whole < 1 || llvm::MulOverflow(elements, whole, elements))
      return emitOpError("is a shard of a tensor whose dimension ") << dim << " of size " << whole << " cannot be";
    if (shard < whole && !llvm::is_contained(getShardedDims(), static_cast<int64_t>(dim)))
      return emitOpError("has size ") << shard << " along dimension " << dim
                                      << ", which is not sharded, of a whole of size " << whole;
  }
  return success();
}

LogicalResult RandomOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const Arithmetic &arithmetic) {
  PhiloxKey key = MixKey(getSeed(), getStream());
  double stddev = getStddev().convertToDouble();
  std::vector<int64_t> first(results[0].shape.size(), 0);
  for (auto [dim, place] : llvm::zip_equal(getShardedDims(), operands)) {
    if (place.data[0] < 0)
      return emitOpError("shard ") << place.data[0] << " along dimension " << dim << " does not exist";
    first[dim] = static_cast<int64_t>(place.data[0]) * results[0].shape[dim];
  }
  HostTensor whole; // without elements
  whole.shape = getWhole() ? getWhole()->vec() : results[0].shape;
  std::vector<int64_t> strides = whole.strides();
  int64_t next = 0;
  forEachIndex(results[0].shape, [&](std::vector<int64_t> index) {
    bool inside = true;
    for (auto [at, start, size] : llvm::zip_equal(index, first, whole.shape)) {
      at += start;
      inside &= at < size;
    }
    int64_t global = offsetOf(index, strides);
    results[0].data[next++] = inside ? arithmetic.number(stddev * NormalBlock(key, global / 4)[global % 4]) : 0.0;
  });
  return success();
}

FactorRule RandomOp::factorRule() { return alignedRule(*this); }

double RandomOp::flops() { return 10.0 * tensorType(getResult()).getNumElements(); }

// Draws the values at their places in the whole.
void RandomOp::localize(LocalContext &context) {
  ImplicitLocOpBuilder builder(getLoc(), *this);
  SmallVector<Value> places;
  bool isPadded = getWhole().has_value();
  SmallVector<int64_t> dims, whole = llvm::to_vector(isPadded ? *getWhole() : getType().getShape());
  for (int64_t dim = 0; dim < getType().getRank(); ++dim) {
    LocalContext::Axes axes = context.axesOf(getResult(), dim);
    if (axes.empty())
      continue;
    if (!isPadded)
      whole[dim] *= context.countAlong(axes);
    dims.push_back(dim);
    places.push_back(context.placeAlong(builder, axes));
  }
  if (places.empty())
    return;
  getPlacesMutable().assign(places);
  setShardedDims(dims);
  setWhole(whole);
}

bool RandomOp::canSplitDims(bool byRule, ArrayRef<DimSplits>, ArrayRef<DimSplits>) {
  return byRule && !getWhole(); // whose dimensions are those of before
}

std::optional<double> RandomOp::resultPadding(const PaddingContext &, unsigned) { return 0.0; }

void RandomOp::growResult(unsigned, RankedTensorType type) {
  if (!getWhole())
    setWhole(getType().getShape());
  getResult().setType(type);
}

/// Whether a shard may go beyond the end of the whole.
static bool mayLeaveWhole(RandomOp op) {
  if (!op.getWhole())
    return false;
  return llvm::any_of(llvm::enumerate(*op.getWhole(), op.getType().getShape()), [&](auto sizes) {
    auto [dim, whole, shard] = sizes;
    return llvm::is_contained(op.getShardedDims(), static_cast<int64_t>(dim)) ? whole % shard != 0 : whole < shard;
  });
}

StringRef RandomOp::kernelName() { return "random_normal"; }

DictionaryAttr RandomOp::kernelConfig(bool) {
  ArrayRef<int64_t> shape = getType().getShape();
  KernelConfig config(getContext());
  config.integer("seed", getSeed()).integer("key", getStream());
  config.real("mean", 0.0).real("stddev", getStddev().convertToDouble());
  config.integers("global_shape", getWhole().value_or(shape));
  config.integers("offsets", SmallVector<int64_t>(shape.size(), 0));
  if (!getPlaces().empty())
    config.integers("sharded_dims", getShardedDims());
  if (mayLeaveWhole(*this))
    config.integer("padded", 1);
  return config.get();
}

LogicalResult RandomOp::buildFromKernel(ImplicitLocOpBuilder &builder, const KernelUse &use, ValueRange operands,
                                        SmallVectorImpl<Value> &results) {
  if (!use.real("mean").isZero() || !llvm::all_of(use.integers("offsets"), [](int64_t offset) { return offset == 0; }))
    return failure();
  results.push_back(RandomOp::create(builder, use.results[0], use.real("stddev"), use.integer("seed"),
                                     use.integer("key"), operands, use.integers("sharded_dims"),
                                     builder.getDenseI64ArrayAttr(use.integers("global_shape"))));
  return success();
}
