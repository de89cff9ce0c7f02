//===- KernelFrame.h - State that all parts of a kernel's emission share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_KERNELFRAME_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_KERNELFRAME_H

#include "compiler/Codegen/Nests/Nest.h"
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

/// Returns the vector type with `lanes` elements, or the element type if `lanes` is 0.
inline Type laneType(Type elementType, int64_t lanes) {
  return lanes == 0 ? elementType : VectorType::get({lanes}, elementType);
}

/// Returns the type of an element in memory: i8 for i1, i16 for bf16, otherwise the same type.
Type memoryType(Type elementType);

inline SmallVector<const Expr *> valuesOf(ArrayRef<Nest::Store> stores) {
  return llvm::to_vector(llvm::map_range(stores, [](const Nest::Store &store) { return store.value; }));
}

/// A builder that emits all code at one location, and constants.
class KernelBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value constant(int64_t number) { return arith::ConstantOp::create(*this, getI64IntegerAttr(number)); }
  Value i32(int64_t number) { return arith::ConstantOp::create(*this, getI32IntegerAttr(number)); }
  Value toI64(Value value) { return arith::ExtUIOp::create(*this, getI64Type(), value); }

  /// Emits a vector of `count` equal elements, or a scalar if `count` is 0.
  Value splat(TypedAttr element, int64_t count);

  /// Extracts `count` elements of `vector`, from index `first` on.
  Value elements(Value vector, int64_t first, int64_t count);
};

/// A tensor in memory: an argument of the kernel, or a buffer on the stack.
struct Argument {
  Value pointer;
  RankedTensorType type;
  /// The distance in elements between rows of a tile; null for a dense tensor.
  Value stride = {};
};

/// The kernel being emitted: the state that all classes which emit its code share.
struct KernelFrame {
  KernelFrame(func::FuncOp kernel, Location loc, const TargetCpu &cpu, int64_t vectorAlignment = 0)
      : kernel(kernel), b(loc, kernel.getContext()), cpu(cpu), vectorLanes(cpu.vectorBits / 32),
        vectorAlignment(vectorAlignment) {}

  /// Returns output `number` of the kernel in memory.
  const Argument &output(unsigned number) const { return arguments[inputCount + number]; }

  func::FuncOp kernel;
  KernelBuilder b;
  const TargetCpu &cpu;
  /// The number of f32 elements in a vector register.
  int64_t vectorLanes;
  /// The alignment of all arguments in bytes that vector accesses may assume; 0: only that of an element.
  int64_t vectorAlignment;
  /// The memory of the inputs, then of the outputs.
  SmallVector<Argument> arguments;
  unsigned inputCount = 0;
  /// The nest being emitted.
  const Nest *nest = nullptr;
  /// Set when an operation was not supported; a diagnostic has then been emitted.
  bool unsupported = false;
};

/// Returns, as an i64, how many rows of its results the kernel must compute; null if it computes all rows. The frame's
/// arguments must be set.
Value loadValidRows(KernelFrame &frame);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_KERNELFRAME_H
