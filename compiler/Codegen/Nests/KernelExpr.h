//===- KernelExpr.h - The value of each element of a kernel's results
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_NESTS_KERNELEXPR_H
#define BOWLINE_COMPILER_CODEGEN_NESTS_KERNELEXPR_H

#include "compiler/Codegen/Nests/IndexSpace.h"
#include "dialects/Graph/ElementBuilder.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <deque>
#include <map>

namespace mlir::arith {
class ConstantOp;
} // namespace mlir::arith

namespace bowline::codegen {

/// The value of one tensor element as an expression over loop dimensions. Operations that move elements (broadcast,
/// transpose, reshape, slice, and, except for a condition, pad and concat) exist only in index expressions. So a chain
/// of them costs nothing and fuses with any operation.
struct Expr {
  enum class Kind {
    Load,     ///< element `index` of argument `argument`
    Constant, ///< `constant`
    Index,    ///< the integer `index`
    Compute,  ///< `op` applied to the operands
    Reduce,   ///< sum (if isSum) or maximum of the operand over the dimensions `dims`
    Choose    ///< the operand whose box contains the index; zero if there is none
  };
  Kind kind;
  /// The type of the computation. The type of a load or of a result in memory may be narrower.
  mlir::Type type;
  llvm::SmallVector<const Expr *> operands;
  mlir::AffineExpr index;
  unsigned argument = 0;
  mlir::Attribute constant;
  mlir::Operation *op = nullptr;
  bool isSum = false;
  /// For a maximum: the result may be any value if an element is NaN.
  bool ignoresNan = false;
  llvm::SmallVector<unsigned> dims;
  llvm::SmallVector<graph::IndexBox> boxes;

  /// The dimensions on which the value depends.
  DimSet freeDims = 0;
  /// The greatest depth of nested reductions in the expression.
  unsigned reduceDepth = 0;
};

/// Returns the type in which elements are computed: f32 for bf16 and f16.
mlir::Type computeType(mlir::Type elementType);

/// Owns the expressions of one nest and builds them from a block of tensor operations. Equal expressions have equal
/// pointers, so that each is computed once.
class ExprBuilder : private graph::ElementBuilder {
public:
  explicit ExprBuilder(IndexSpace &space) : space(space) {}

  /// Returns element `index` of `value`. Returns null after a diagnostic where an operation has no elementwise form.
  const Expr *elementOf(mlir::Value value, Index index);

  const Expr *zero(mlir::Type type);

  /// Returns `expr` with free dimensions replaced, without box conditions that always or never hold.
  const Expr *replace(const Expr *expr, const llvm::SmallDenseMap<unsigned, mlir::AffineExpr> &replacements);

private:
  graph::Element at(mlir::Value value, Index index) override { return {elementOf(value, index)}; }
  mlir::AffineExpr plus(mlir::AffineExpr expr, int64_t amount) override {
    return space.add(expr, space.constant(amount));
  }
  llvm::SmallVector<mlir::AffineExpr> reshape(Index index, llvm::ArrayRef<int64_t> from,
                                              llvm::ArrayRef<int64_t> to) override;
  graph::Element number(mlir::Type type, mlir::AffineExpr index) override;
  graph::Element choose(mlir::Type type, llvm::ArrayRef<graph::IndexBox> boxes,
                        llvm::ArrayRef<graph::Element> elements) override;
  graph::Element reduce(mlir::Value input, llvm::ArrayRef<int64_t> dims, Index index, bool isSum,
                        bool ignoresNan) override;
  graph::Element compute(mlir::Operation *op, Index index) override;

  static const Expr *exprOf(graph::Element element) { return static_cast<const Expr *>(element.handle); }
  const Expr *build(mlir::Value value, Index index);
  const Expr *constantOf(mlir::arith::ConstantOp constant);
  const Expr *choose(mlir::Type type, llvm::ArrayRef<graph::IndexBox> boxes, llvm::ArrayRef<const Expr *> operands);
  const Expr *load(mlir::Type type, unsigned argument, mlir::AffineExpr index);
  const Expr *reduce(Expr reduction);
  const Expr *add(Expr expr);
  static std::vector<uint64_t> keyOf(const Expr &expr);

  IndexSpace &space;
  std::deque<Expr> storage;
  std::map<std::pair<void *, std::vector<const void *>>, const Expr *> memo;
  std::map<std::vector<uint64_t>, const Expr *> interned;
};

/// Returns whether `outer` and `inner` can be merged into one dimension: in every access, one step of `outer` advances
/// as far as `size(inner)` steps of `inner`.
bool canMergeDims(llvm::ArrayRef<const Expr *> roots, const IndexSpace &space, unsigned outer, unsigned inner);
bool canMergeDims(mlir::AffineExpr index, const IndexSpace &space, unsigned outer, unsigned inner);

/// Calls `visit` once for each expression reachable from `roots`, operands first.
void forEachExpr(llvm::ArrayRef<const Expr *> roots, llvm::function_ref<void(const Expr *)> visit);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_NESTS_KERNELEXPR_H
