//===- Generation.cpp - iota, random
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "kernels/registry/philox.h"

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
  return success();
}

LogicalResult RandomOp::interpret(ArrayRef<HostTensor>, MutableArrayRef<HostTensor> results) {
  PhiloxKey key = MixKey(getSeed(), getStream());
  double stddev = getStddev().convertToDouble();
  for (auto [i, value] : llvm::enumerate(results[0].data))
    value = stddev * NormalBlock(key, i / 4)[i % 4];
  return success();
}

FactorRule RandomOp::factorRule() { return alignedRule(*this); }

double RandomOp::flops() { return 10.0 * tensorType(getResult()).getNumElements(); }
