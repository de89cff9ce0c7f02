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

/// A mark of products: they read their weight as it is, because panels would take memory that is worth more elsewhere.
inline constexpr llvm::StringLiteral kUnpackedAttr = "plan.unpacked";

/// The second operand of matrix products that keeps its value during all runs of a segment, or in all calls of entries.
struct PackableWeight {
  plan::SegmentOp segment; // the segment of the first product
  bool isFixed = false;    // same value in all calls: packed in `prepare`, when parameters are set
  mlir::Value source;
  mlir::DictionaryAttr layout;           // k, n, b_strides
  mlir::RankedTensorType packedType;     // type of the buffer of pack_matrix
  std::vector<plan::LaunchOp> launches;  // the products
  int64_t calls = 0;                     // calls of the products in all runs; if fixed, in one call of each entry
  double savedRows = 0, productRows = 0; // time in rows of a product: saved by packing, and taken by all products
};

/// The least fraction of the products' time that packing must save: `inStep` if each step packs again; `persistent` if
/// parameters are fixed, so that the packed copy stays in memory beside the plain one.
struct PackingThresholds {
  double inStep, persistent;
};

/// Statistics of weights that stay unpacked because packing saves less than the threshold: their number, and the bytes
/// that their panels would take.
struct PlainWeights {
  size_t count = 0;
  int64_t bytes = 0;
};

/// Packs a weight once for many calls of `matmul`, whose kernel otherwise copies B into panels in every call. A command
/// `pack_matrix` writes the panels once, right before the segment or where the weight is computed, and the products
/// read its buffer. For fixed parameters the command is in entry `prepare`, and the buffer persists. Results are equal
/// bit for bit.
///
/// The target, which must have `packing`, states costs in rows of a product: the rows that packing saves, and the rows
/// that it takes (targets/target.h). In `prepare` the latter count as zero. A single thread whose result is not f32
/// packs B again after some number of rows; the saving includes that.
class WeightPacking {
public:
  /// Returns whether weights may be packed: the target has panels, and the strategy does not recompute `full`.
  static bool isPossible(mlir::ModuleOp module, const ModuleTarget &target);

  /// Finds the weights of products not marked kUnpackedAttr for which packing saves at least the fraction `least`.
  WeightPacking(mlir::ModuleOp module, ModuleTarget target, PackingThresholds least);

  /// The weights to pack, sorted by falling saving per byte.
  llvm::ArrayRef<PackableWeight> weights() const { return found; }

  /// Weights that stay unpacked: the number of fixed ones that products with few rows read in place, and statistics of
  /// those for which packing saves too little, first fixed ones, then others.
  size_t readInPlace() const { return inPlace.size(); }
  const PlainWeights &tooLittleForGood() const { return plainFixed; }
  const PlainWeights &tooLittleInStep() const { return plainInStep; }

  /// The weights of products that are marked kUnpackedAttr.
  size_t declined() const { return declinedWeights.size(); }

  /// Packs all weights.
  void run();

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
  llvm::DenseSet<mlir::Value> inPlace, declinedWeights;
  PlainWeights plainFixed, plainInStep;
  llvm::DenseMap<mlir::Attribute, plan::KernelOp> packKernels; // by layout and type
  llvm::DenseMap<mlir::Operation *, plan::KernelOp> products;  // by the kernel that takes plain weights
};

} // namespace bowline

#endif // BOWLINE_PASSES_HOISTING_WEIGHTPACKING_H
