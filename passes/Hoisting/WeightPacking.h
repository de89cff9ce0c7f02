//===- WeightPacking.h - Weights in the order in which matrix products read them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_HOISTING_WEIGHTPACKING_H
#define BOWLINE_PASSES_HOISTING_WEIGHTPACKING_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/ModuleTarget.h"
#include "passes/Analysis/PrepareProgram.h"
#include "passes/Analysis/SegmentInvariants.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// A second operand of matrix products that stays the same while a segment runs or repeats, or in all calls.
struct PackableWeight {
  plan::SegmentOp segment; // the segment of the first product
  bool isFixed = false;    // in all calls: packed when parameters are set
  mlir::Value source;
  mlir::DictionaryAttr layout;           // k, n, b_strides
  mlir::RankedTensorType packedType;     // type of the buffer of pack_matrix
  std::vector<plan::LaunchOp> launches;  // the products
  int64_t calls = 0;                     // of the products, in all runs of the segment; fixed: in a call of each entry
  double savedRows = 0, productRows = 0; // in rows of a product with this weight: saved by packing, and of all products
};

/// Least share of the products' time that packing must save: where it is done in each step, and where parameters are
/// the same in all calls, so that the packed copy persists beside the plain one.
struct PackingThresholds {
  double inStep, persistent;
};

/// Weights that stay plain because packing saves less than the threshold: how many, and the bytes that panels would
/// take.
struct PlainWeights {
  size_t count = 0;
  int64_t bytes = 0;
};

/// Packs weights once for many calls of `matmul`. The kernel copies B into panels in every call; here a command
/// `pack_matrix` does it once, right before the segment or where the weight is computed, and the products take its
/// buffer. Where parameters are the same in all calls it is in the entry `prepare`, and the buffer persists. Results
/// are the same bit for bit.
///
/// The target says how many rows of a product packing saves and takes (targets/target.h); it must have `packing`. In
/// `prepare` the rows that packing takes count for nothing. A single thread that does not store f32 packs B again after
/// some rows, and saves that too.
class WeightPacking {
public:
  /// Weights for which packing saves at least what `least` asks for.
  WeightPacking(mlir::ModuleOp module, ModuleTarget target, PackingThresholds least);

  /// The most saved per byte first.
  llvm::ArrayRef<PackableWeight> weights() const { return found; }

  /// Weights that stay plain: how many fixed ones the products read in place, because they have few rows, and those for
  /// which packing saves too little, fixed ones and others.
  size_t readInPlace() const { return inPlace.size(); }
  const PlainWeights &tooLittleForGood() const { return plainFixed; }
  const PlainWeights &tooLittleInStep() const { return plainInStep; }

  /// Packs the first `most` weights.
  void run(size_t most);

private:
  using WeightMap = llvm::MapVector<std::pair<mlir::Value, mlir::Attribute>, PackableWeight>;

  void collect(plan::SegmentOp segment);
  void add(plan::LaunchOp launch, mlir::DictionaryAttr layout, int64_t runs, WeightMap &weights);
  /// The place where `pack_matrix` of a weight is inserted.
  mlir::OpBuilder placeOf(PackableWeight &weight);
  /// How `launch` reads its weight, if it may be a packed one.
  std::optional<mlir::DictionaryAttr> layoutOf(plan::LaunchOp launch, plan::KernelOp kernel);
  void pack(PackableWeight &weight);
  void usePacked(plan::LaunchOp launch, mlir::Value packed);
  plan::KernelOp packKernel(const PackableWeight &weight);
  plan::KernelOp packedProduct(plan::KernelOp kernel, mlir::RankedTensorType packedType);
  std::optional<size_t> scratchBytes(llvm::StringRef name, mlir::DictionaryAttr config,
                                     llvm::ArrayRef<plan::ArgumentAttr> arguments, bool hasEpilogue);
  targets::Packing::Rows costOf(mlir::DictionaryAttr layout) const;
  /// The type of a weight of k rows and n columns in panels; null if the target has no panels of such elements.
  mlir::RankedTensorType packedType(int64_t k, int64_t n, mlir::Type element) const;
  void eraseUnused();
  void dropThoseBelow(PackingThresholds least);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  ModuleTarget target;
  PrepareProgram prepare;
  std::vector<PackableWeight> found;
  WeightMap fixedWeights;
  llvm::DenseSet<mlir::Value> inPlace;
  PlainWeights plainFixed, plainInStep;
  llvm::DenseMap<mlir::Attribute, plan::KernelOp> packKernels; // by layout and type
  llvm::DenseMap<mlir::Operation *, plan::KernelOp> products;  // by the kernel that takes plain weights
};

} // namespace bowline

#endif // BOWLINE_PASSES_HOISTING_WEIGHTPACKING_H
