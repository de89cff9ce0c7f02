//===- KernelEmitter.h - Builds the loops of one kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_KERNELEMITTER_H
#define BOWLINE_COMPILER_CODEGEN_KERNELEMITTER_H

#include "compiler/Codegen/Nest.h"
#include "compiler/Codegen/TargetCpu.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bowline::codegen {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::StringRef;
using mlir::AffineExpr;
using mlir::AffineExprKind;
using mlir::Block;
using mlir::ImplicitLocOpBuilder;
using mlir::Location;
using mlir::ModuleOp;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Type;
using mlir::TypedAttr;
using mlir::Value;
using mlir::ValueRange;
using mlir::VectorType;
namespace arith = mlir::arith;
namespace func = mlir::func;
namespace scf = mlir::scf;
namespace vector = mlir::vector;

/// A vector of `lanes` elements; the element type itself for none.
inline Type laneType(Type elementType, int64_t lanes) {
  return lanes == 0 ? elementType : VectorType::get({lanes}, elementType);
}

/// How an element type is held in memory: i1 in a byte, bf16 as its bits.
Type memoryType(Type elementType);

/// A place for code where some dimensions have values.
struct Scope {
  explicit Scope(Block *block) : block(block) {}
  Scope(Block *block, unsigned dim, Value value) : block(block) { dims[dim] = value; }

  Block *block;
  /// The operation with a block that is being filled: what is added here now must stand before it.
  Operation *before = nullptr;
  llvm::SmallDenseMap<unsigned, Value> dims;
  llvm::DenseMap<const Expr *, Value> values;
};

/// Builds the function of one kernel, nest after nest. Its members are in NestEmitter.cpp (loops over units, rows and
/// vectors), EmitReductions.cpp, EmitColumns.cpp, EmitTiles.cpp, EmitValues.cpp (expressions and indices),
/// EmitMemory.cpp and Epilogue.cpp. GpuKernelEmitter builds its own loops on the values of this one.
class KernelEmitter {
public:
  KernelEmitter(func::FuncOp kernel, Location loc, const TargetCpu &cpu)
      : kernel(kernel), b(loc, kernel.getContext()), cpu(cpu), vectorLanes(cpu.vectorBits / 32) {}

  llvm::LogicalResult emit(ModuleOp module, StringRef symbol, ArrayRef<std::unique_ptr<Nest>> nests);

  llvm::LogicalResult emitEpilogue(ModuleOp module, StringRef symbol, const Nest &planned);

  virtual ~KernelEmitter() = default;

protected:
  /// The dimension along which values are vectors.
  struct Lanes {
    DimSet dim = 0;
    int64_t count = 0;
    /// Which lanes exist; null where all do.
    Value mask;
  };

  struct Argument {
    Value pointer;
    RankedTensorType type;
    /// Elements between rows of a tile; null where the tensor is dense.
    Value stride;
  };

  /// The values of `group`, reductions over the same dimensions that belong in the innermost scope.
  virtual SmallVector<Value> reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  /// A number of bytes that divides the address of element `index` of `argument`, which the lanes begin with.
  virtual unsigned alignmentOf(const Argument &argument, AffineExpr index);

  void insertIn(Scope &scope) {
    if (scope.before)
      b.setInsertionPoint(scope.before);
    else
      b.setInsertionPointToEnd(scope.block);
  }
  void insertHere() { insertIn(scopes.back()); }

  /// The scope in which everything that depends on `dims` only belongs: the innermost that gives one of them a value.
  size_t scopeOf(DimSet dims) const {
    for (size_t i = scopes.size(); i-- > 1;)
      for (auto &[dim, value] : scopes[i].dims)
        if (dims & dimBit(dim))
          return i;
    return 0;
  }

  bool isBound(DimSet dims) const {
    for (const Scope &scope : scopes)
      for (auto &[dim, value] : scope.dims)
        dims &= ~dimBit(dim);
    return dims == 0;
  }

  /// Runs `body` as if scope `index` were the innermost.
  template <typename Body> void inScope(size_t index, Body body) {
    SmallVector<Scope, 0> inner(std::make_move_iterator(scopes.begin() + index + 1),
                                std::make_move_iterator(scopes.end()));
    scopes.truncate(index + 1);
    body();
    scopes.append(std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  }

  using LoopBody = llvm::function_ref<SmallVector<Value>(ValueRange)>;

  SmallVector<Value> emitLoop(unsigned dim, Value from, Value to, int64_t step, ValueRange initial, LoopBody body) {
    insertHere();
    Value stepValue = constant(step);
    auto loop = scf::ForOp::create(b, from, to, stepValue, initial);
    loop.getBody()->clear();
    emitInside(loop, Scope(loop.getBody(), dim, loop.getInductionVar()), [&] {
      SmallVector<Value> results = body(loop.getRegionIterArgs());
      insertHere();
      scf::YieldOp::create(b, results);
    });
    return llvm::to_vector(ValueRange(loop.getResults()));
  }

  /// Runs `body` in the scope `inner` of a block of `op`, which was just added to the innermost scope.
  template <typename Body> void emitInside(Operation *op, Scope inner, Body body) {
    SmallVector<std::pair<size_t, Operation *>> outer;
    for (size_t i = scopes.size(); i-- > 0 && scopes[i].block == op->getBlock();)
      outer.emplace_back(i, std::exchange(scopes[i].before, op));
    scopes.push_back(std::move(inner));
    body();
    scopes.pop_back();
    for (auto [i, before] : outer)
      scopes[i].before = before;
    insertHere();
  }

  /// Runs `body` where `dim` has the value `at`, without a loop.
  template <typename Body> void emitOnce(unsigned dim, Value at, Body body) {
    // In the same place as the scope around it; only what depends on `dim` is kept apart.
    Scope scope(scopes.back().block, dim, at);
    scope.before = scopes.back().before;
    scopes.push_back(std::move(scope));
    body();
    scopes.pop_back();
    insertHere();
  }

  static SmallVector<const Expr *> valuesOf(ArrayRef<Nest::Store> stores) {
    return llvm::to_vector(llvm::map_range(stores, [](const Nest::Store &store) { return store.value; }));
  }

  /// Blocks of the inner dimension that are computed together; none where it is not divided.
  struct Blocks {
    Value first, end;
    explicit operator bool() const { return static_cast<bool>(first); }
  };

  void emitNest(Value from, Value to);

  /// Runs `body` for each number in [from, to), `step` apart.
  void emitNumbers(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);

  /// What units compute at `row` of the outer dimensions.
  void emitUnit(ArrayRef<const Expr *> roots, Value row, Blocks blocks);

  /// One row, or blocks of one.
  void emitRowOfUnit(ArrayRef<const Expr *> roots, Blocks blocks);

  /// Runs `body` where `number` is `wanted`.
  void emitIf(Value number, int64_t wanted, llvm::function_ref<void()> body);

  /// Buffers on the stack for what `nest` reads transposed.
  void allocateSquares();

  /// The rows of `tile`, or blocks of each.
  void emitTile(Value tile, Blocks blocks);

  /// As many rows as a square has at most, square by square.
  void emitSquares(int64_t rows, Blocks blocks);
  void emitSquare(int64_t rows, int64_t columns);

  /// Copies a square of `load`, or a part of one, to its buffer.
  void transposeSquare(const Expr *load, int64_t rows, int64_t columns);
  Value loadSquare(const Argument &square);

  /// Asks for the memory that element `index` is in `ahead` steps of `dim` later.
  void prefetch(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead);
  void prefetchLanes(const Argument &argument, AffineExpr index, unsigned dim, int64_t ahead);
  void prefetchScattered();
  /// What lies ahead along `dim` of what `values` read: a little, or `ahead` elements.
  void prefetchAhead(ArrayRef<const Expr *> values, unsigned dim, std::optional<int64_t> ahead = std::nullopt);
  /// What `bodies` read in the lanes, `ahead` rows later.
  void prefetchColumns(ArrayRef<const Expr *> bodies, unsigned row, int64_t ahead);

  int64_t lanesOf(const Nest::Segment &segment);

  void emitStores(const Nest::Segment &segment);

  /// Runs `body` for vectors of `count` lanes.
  void emitVectors(const Nest::Segment &segment, int64_t count, Value from, Value to, llvm::function_ref<void()> body);

  /// As many vectors as it takes, the last one masked.
  void emitMaskedVectors(const Nest::Segment &segment, int64_t count, Value from, Value to);

  /// The last `rest` elements, fewer than a vector.
  void emitTail(const Nest::Segment &segment, int64_t from, int64_t rest, llvm::function_ref<void()> body);

  /// `count` lanes of which the first `present` exist.
  Lanes firstLanes(unsigned dim, int64_t count, int64_t present);

  void setTailLanes(unsigned dim, int64_t rest);

  /// Runs `body` for each vector of the segment, or of blocks of it.
  void emitElements(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body);
  void emitRow(const Nest::Segment &segment, llvm::function_ref<void()> body);
  void emitBlocks(const Nest::Segment &segment, Blocks blocks, llvm::function_ref<void()> body);

  /// The column sums of `nest`, in a buffer for the columns of `blocks`.
  void emitColumns(Blocks blocks);
  /// Adds a few rows to those sums.
  void emitColumnsOfRows(int64_t rows, Blocks blocks);
  void allocateColumns();
  Value columnAddress(const Expr *reduce);
  Value loadColumns(const Expr *reduce);

  /// Computes the reductions under `roots` that belong in the innermost scope, those over the same dimensions in one
  /// loop unless one needs the other.
  void prepare(ArrayRef<const Expr *> roots);

  bool isVarying(const Expr *expr) const { return expr->freeDims & lanes.dim; }

  void emitReductions(ArrayRef<const Expr *> group);

  /// Computes a sum of which one term at most is not zero, and known where it is. False if `reduce` is none.
  bool emitOneTerm(const Expr *reduce);

  SmallVector<Value> identities(ArrayRef<const Expr *> group, int64_t count);

  Value identity(const Expr *reduce, int64_t count);

  Value combine(const Expr *reduce, Value lhs, Value rhs);

  Value combineLanes(const Expr *reduce, Value vector);

  /// Combines the bodies' values into the accumulators.
  SmallVector<Value> accumulate(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies, ValueRange accumulators);

  /// Loops over `dims`, and `body` inside of them.
  SmallVector<Value> emitLoops(ArrayRef<unsigned> dims, SmallVector<Value> accumulators, LoopBody body);

  /// Values are vectors along another dimension.
  SmallVector<Value> reduceAcross(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  /// One row after the other, where inner reductions are dense and what lies along the reduced dimension is not.
  SmallVector<Value> reduceRows(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  /// Vectors along the last reduced dimension.
  SmallVector<Value> reduceAlong(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  Value constant(int64_t number) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(number)); }

  Value splat(TypedAttr element, int64_t count);

  Value toLanes(Value scalar);

  /// The value of `expr`: a vector where it depends on the dimension of the lanes, a scalar elsewhere, computed once
  /// in the outermost loop that it belongs in.
  Value value(const Expr *expr);

  Value compute(const Expr *expr, SmallVectorImpl<Value> &operands);

  Value apply(const Expr *expr, ArrayRef<Value> operands, int64_t count);

  /// Whether all bounds hold: a condition per lane, or one for all of them.
  Value holds(const Expr::Box &box, int64_t count);

  Value dimValue(unsigned dim) const;

  Value emitBinary(AffineExprKind kind, Value lhs, Value rhs);

  /// The index in the first lane.
  Value scalarIndex(AffineExpr expr);

  /// The indices in all lanes, as integers of `type`, which holds them.
  Value vectorIndex(AffineExpr expr, Type type);

  Value address(const Argument &argument, Type element, Value index);

  Value clamp(Value index, int64_t low, int64_t high);

  Value load(const Expr *expr);

  /// Consecutive elements from `pointer` on, one per lane; zero outside of `mask` where it is set. `alignment` is what
  /// is known of the pointer, in bytes; 0: that of an element.
  Value loadVector(const Argument &argument, Value pointer, Value mask, unsigned alignment = 0);

  /// `count` elements of `vector`, from `first` on.
  Value elements(Value vector, int64_t first, int64_t count);

  Type sameLanes(Value like, Type element);
  Value integerLike(Value like, int64_t number);

  Value fromMemory(Value raw, Type elementType);

  Value toMemory(Value computed, Type elementType);

  void store(const Nest::Store &target, Value computed);

  /// With `isStreamed`, `pointer` lies a number of whole vectors behind the begin of a cache line. `alignment` as
  /// above.
  void storeVector(const Argument &argument, Value pointer, Value computed, bool isStreamed = false,
                   unsigned alignment = 0);

  /// Stores `raw`, past the caches, at an address that is a multiple of its size or of a cache line.
  void streamVector(Type elementType, Value pointer, Value raw);

  /// A buffer on the stack for the row that `nest` keeps.
  void allocateKept();

  Value loadKept();

  void storeKept(Value computed);

  func::FuncOp kernel;
  ImplicitLocOpBuilder b;
  const TargetCpu &cpu;
  /// f32 in a register.
  int64_t vectorLanes;
  unsigned inputCount = 0;
  SmallVector<Argument> arguments;
  Argument keptRow;
  llvm::SmallDenseMap<const Expr *, Argument> squares;
  llvm::SmallDenseMap<const Expr *, Argument> columns;
  /// The first column of the blocks.
  Value firstColumn;
  /// The first row of the square.
  Value squareRow;
  const Nest *nest = nullptr;
  SmallVector<Scope, 0> scopes;
  Lanes lanes;
  bool unsupported = false;
  /// A store was streamed.
  bool streams = false;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_KERNELEMITTER_H
