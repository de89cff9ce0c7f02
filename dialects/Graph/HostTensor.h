//===- HostTensor.h - Tensor values of the reference semantics --*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_HOSTTENSOR_H
#define BOWLINE_DIALECTS_GRAPH_HOSTTENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bowline::graph {

/// Calls `body(index)` for every index of `shape` in row-major order.
template <typename Body> void forEachIndex(const std::vector<int64_t> &shape, Body body) {
  for (int64_t size : shape)
    if (size == 0)
      return;
  std::vector<int64_t> index(shape.size(), 0);
  while (true) {
    body(index);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

/// A dense row-major tensor for the reference interpreter. `data` holds the numbers of an Arithmetic, encoded in f64.
/// Integers and booleans use the same storage, exact below 2^53, so the reference semantics has one kind of value.
struct HostTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;

  HostTensor() = default;
  explicit HostTensor(std::vector<int64_t> tensorShape) : shape(std::move(tensorShape)) { data.resize(count()); }

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }

  int64_t count() const {
    int64_t product = 1;
    for (int64_t size : shape)
      product *= size;
    return product;
  }

  /// The stride of each dimension, in elements.
  std::vector<int64_t> strides() const {
    std::vector<int64_t> result(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      result[i] = step;
      step *= shape[i];
    }
    return result;
  }

  /// The offsets in `data` of all indices along `dims`, in row-major order, with 0 for the other dimensions.
  llvm::SmallVector<int64_t> offsetsAlong(llvm::ArrayRef<int64_t> dims) const {
    std::vector<int64_t> sizes, own = strides();
    for (int64_t dim : dims)
      sizes.push_back(shape[dim]);
    llvm::SmallVector<int64_t> offsets;
    forEachIndex(sizes, [&](const std::vector<int64_t> &index) {
      int64_t offset = 0;
      for (size_t i = 0; i < index.size(); ++i)
        offset += index[i] * own[dims[i]];
      offsets.push_back(offset);
    });
    return offsets;
  }
};

/// The position of `index` in row-major order under `strides`.
inline int64_t offsetOf(const std::vector<int64_t> &index, const std::vector<int64_t> &strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i)
    offset += index[i] * strides[i];
  return offset;
}

/// Returns the number of valid rows of a tensor with `rows` rows: the last element of `count`, clamped to
/// [0, rows].
inline int64_t validRows(const HostTensor &count, int64_t rows) {
  return static_cast<int64_t>(std::clamp(count.data.back(), 0.0, static_cast<double>(rows)));
}

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_HOSTTENSOR_H
