//===- RankGrid.cpp - The ranks of a mesh, and the part that each has of a tensor
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/RankGrid.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;

RankGrid::RankGrid(dist::MeshOp mesh, StringRef fixedAxis) {
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsRange<StringAttr>(), mesh.getAxisSizes())) {
    names.push_back(name);
    sizes.push_back(name.getValue() == fixedAxis ? 1 : size);
  }
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

int64_t RankGrid::count() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

SmallVector<int64_t> RankGrid::coordinatesOf(int64_t rank) const {
  SmallVector<int64_t> coordinates(sizes.size());
  for (size_t axis = coordinates.size(); axis-- > 0; rank /= sizes[axis])
    coordinates[axis] = rank % sizes[axis];
  return coordinates;
}

size_t RankGrid::indexOf(StringAttr axis) const { return llvm::find(names, axis) - names.begin(); }

int64_t RankGrid::sizeOf(ArrayRef<StringAttr> axes) const {
  int64_t size = 1;
  for (StringAttr axis : axes)
    size *= sizes[indexOf(axis)];
  return size;
}

int64_t RankGrid::placeOf(int64_t rank, ArrayRef<StringAttr> axes) const {
  SmallVector<int64_t> coordinates = coordinatesOf(rank);
  int64_t place = 0;
  for (StringAttr axis : axes)
    place = place * sizes[indexOf(axis)] + coordinates[indexOf(axis)];
  return place;
}

SmallVector<int64_t> RankGrid::groupOf(int64_t rank, ArrayRef<StringAttr> axes) const {
  SmallVector<int64_t> own = coordinatesOf(rank), members(sizeOf(axes));
  for (int64_t other = 0; other < count(); ++other) {
    SmallVector<int64_t> coordinates = coordinatesOf(other);
    bool member = true;
    for (auto [name, a, b] : llvm::zip_equal(names, own, coordinates))
      member &= a == b || llvm::is_contained(axes, name);
    if (member)
      members[placeOf(other, axes)] = other;
  }
  return members;
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

HostTensor bowline::partOf(const HostTensor &whole, int64_t dim, int64_t part, int64_t parts) {
  std::vector<int64_t> shape = whole.shape;
  shape[dim] /= parts;
  HostTensor result(shape);
  std::vector<int64_t> strides = whole.strides();
  int64_t next = 0, first = part * shape[dim];
  forEachIndex(shape, [&](std::vector<int64_t> index) {
    index[dim] += first;
    result.data[next++] = whole.data[offsetOf(index, strides)];
  });
  return result;
}

void bowline::putPart(HostTensor &whole, const HostTensor &part, int64_t dim, int64_t place) {
  std::vector<int64_t> strides = whole.strides();
  int64_t next = 0, first = place * part.shape[dim];
  forEachIndex(part.shape, [&](std::vector<int64_t> index) {
    index[dim] += first;
    whole.data[offsetOf(index, strides)] = part.data[next++];
  });
}

bool bowline::sameValues(const HostTensor &a, const HostTensor &b) {
  return llvm::equal(a.data, b.data, [](double x, double y) { return x == y || (x != x && y != y); });
}

HostTensor RankGrid::pieceOf(const HostTensor &whole, ArrayRef<Axes> axes, int64_t rank) const {
  HostTensor piece = whole;
  for (auto [dim, sharding] : llvm::enumerate(axes))
    if (!sharding.empty())
      piece = partOf(piece, static_cast<int64_t>(dim), placeOf(rank, sharding), sizeOf(sharding));
  return piece;
}

/// The elements of `from` in the box that both shapes have in common, zeros elsewhere.
static HostTensor resized(const HostTensor &from, ArrayRef<int64_t> shape) {
  HostTensor to(shape.vec());
  std::vector<int64_t> common, source = from.strides(), target = to.strides();
  for (auto [a, b] : llvm::zip_equal(from.shape, to.shape))
    common.push_back(std::min(a, b));
  forEachIndex(common, [&](const std::vector<int64_t> &index) {
    to.data[offsetOf(index, target)] = from.data[offsetOf(index, source)];
  });
  return to;
}

std::vector<HostTensor> RankGrid::divide(const HostTensor &given, const dist::Layout &layout) const {
  HostTensor whole = given;
  whole.shape.assign(layout.view.begin(), layout.view.end());
  whole = resized(whole, layout.padded);
  std::vector<HostTensor> parts;
  for (int64_t rank = 0; rank < count(); ++rank) {
    HostTensor &part = parts.emplace_back(pieceOf(whole, layout.axes, rank));
    if (!layout.isFlat())
      continue;
    int64_t shards = sizeOf(layout.flatAxes);
    part.data.resize(layout.shard * shards, 0.0);
    part.shape = {layout.shard * shards};
    part = partOf(part, 0, placeOf(rank, layout.flatAxes), shards);
  }
  return parts;
}

FailureOr<HostTensor> RankGrid::join(const dist::Layout &layout, function_ref<const HostTensor &(int64_t)> heldBy,
                                     Type element, const graph::Arithmetic &arithmetic,
                                     function_ref<InFlightDiagnostic()> emitError) const {
  HostTensor padded(std::vector<int64_t>(layout.padded.begin(), layout.padded.end()));
  std::vector<int64_t> strides = padded.strides();
  // Ranks at different places along `unreduced` hold different summands, each of which is joined by itself.
  std::vector<HostTensor> summands(sizeOf(layout.unreduced), padded);
  std::vector<std::vector<bool>> known(summands.size(), std::vector<bool>(padded.data.size(), false));
  for (int64_t rank = 0; rank < count(); ++rank) {
    HostTensor piece(std::vector<int64_t>(layout.local.begin(), layout.local.end()));
    if (layout.isFlat()) {
      size_t next = 0;
      for (int64_t member : groupOf(rank, layout.flatAxes))
        for (double value : heldBy(member).data)
          if (next < piece.data.size())
            piece.data[next++] = value;
          else if (value != 0)
            return emitError() << "has " << value << " behind its last element, where zeros must be";
    } else {
      piece.data = heldBy(rank).data;
    }
    int64_t place = placeOf(rank, layout.unreduced), next = 0;
    bool equal = true;
    forEachIndex(piece.shape, [&](std::vector<int64_t> index) {
      for (auto [at, local, axes] : llvm::zip_equal(index, piece.shape, layout.axes))
        at += placeOf(rank, axes) * local;
      int64_t offset = offsetOf(index, strides);
      double value = piece.data[next++], &summand = summands[place].data[offset];
      if (known[place][offset])
        equal &= summand == value || (value != value && summand != summand);
      summand = value;
      known[place][offset] = true;
    });
    if (!equal)
      return emitError() << "has different values on ranks that should hold the same shard, such as rank " << rank;
  }
  padded = std::move(summands.front());
  for (const HostTensor &summand : ArrayRef<HostTensor>(summands).drop_front())
    for (auto [sum, value] : llvm::zip_equal(padded.data, summand.data))
      sum = arithmetic.of(element).add(sum, value);
  HostTensor whole = resized(padded, layout.view);
  for (auto [value, expected] : llvm::zip_equal(padded.data, resized(whole, layout.padded).data))
    if (value != expected && (value == value || expected == expected))
      return emitError() << "has " << value << " in its padding, which must be zero";
  whole.shape.assign(layout.global.begin(), layout.global.end());
  return whole;
}
