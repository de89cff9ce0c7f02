//===- Generation.cpp - iota, random
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "kernels/registry/philox.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

LogicalResult IotaOp::verify() {
  return checkDims(getLoc(), "counted", static_cast<int64_t>(getDim()), tensorType(getResult()).getRank(),
                   /*increasing=*/true);
}

LogicalResult IotaOp::interpret(ArrayRef<HostTensor>, MutableArrayRef<HostTensor> results) {
  int64_t next = 0;
  forEachIndex(results[0].shape, [&](const std::vector<int64_t> &index) { results[0].data[next++] = index[getDim()]; });
  return success();
}

FactorRule IotaOp::factorRule() { return alignedRule(*this); }

double IotaOp::flops() { return 0; }

LogicalResult RandomOp::verify() {
  if (!getStddev().isFinite() || getStddev().isNegative())
    return emitOpError("the standard deviation must be finite and not negative");
  if (getPlaces().size() != getCutDims().size() || (!getPlaces().empty() && !getWhole()))
    return emitOpError("needs one place per cut dimension, and the whole shape where there are any");
  if (!getWhole())
    return success();
  RankedTensorType type = tensorType(getResult());
  if (static_cast<int64_t>(getWhole()->size()) != type.getRank())
    return emitOpError("is part of a tensor of rank ") << getWhole()->size() << ", but has rank " << type.getRank();
  if (failed(checkDims(getLoc(), "cut", getCutDims(), type.getRank(), /*increasing=*/true)))
    return failure();
  int64_t elements = 1;
  for (auto [dim, whole, part] : llvm::enumerate(*getWhole(), type.getShape())) {
    if (whole < 1 || llvm::MulOverflow(elements, whole, elements))
      return emitOpError("is part of a tensor whose dimension ") << dim << " of size " << whole << " cannot be";
    if (part < whole && !llvm::is_contained(getCutDims(), static_cast<int64_t>(dim)))
      return emitOpError("has size ") << part << " along dimension " << dim << ", which is not cut, of a whole of size "
                                      << whole;
  }
  return success();
}

LogicalResult RandomOp::interpret(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  PhiloxKey key = MixKey(getSeed(), getStream());
  double stddev = getStddev().convertToDouble();
  std::vector<int64_t> first(results[0].shape.size(), 0);
  for (auto [dim, place] : llvm::zip_equal(getCutDims(), operands)) {
    if (place.data[0] < 0)
      return emitOpError("part ") << place.data[0] << " along dimension " << dim << " does not exist";
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
    results[0].data[next++] = inside ? stddev * NormalBlock(key, global / 4)[global % 4] : 0.0;
  });
  return success();
}

FactorRule RandomOp::factorRule() { return alignedRule(*this); }

double RandomOp::flops() { return 10.0 * tensorType(getResult()).getNumElements(); }
