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

/// The type of a vector of `lanes` elements; the element type itself where `lanes` is 0.
inline Type laneType(Type elementType, int64_t lanes) {
  return lanes == 0 ? elementType : VectorType::get({lanes}, elementType);
}

/// The type of an element in memory: i8 for i1, i16 for bf16, else the same type.
Type memoryType(Type elementType);

inline SmallVector<const Expr *> valuesOf(ArrayRef<Nest::Store> stores) {
  return llvm::to_vector(llvm::map_range(stores, [](const Nest::Store &store) { return store.value; }));
}

/// A builder with one location that also makes constants.
class KernelBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value constant(int64_t number) { return arith::ConstantOp::create(*this, getI64IntegerAttr(number)); }
  Value i32(int64_t number) { return arith::ConstantOp::create(*this, getI32IntegerAttr(number)); }
  Value toI64(Value value) { return arith::ExtUIOp::create(*this, getI64Type(), value); }

  /// A vector of `count` equal elements; a scalar where `count` is 0.
  Value splat(TypedAttr element, int64_t count);

  /// `count` elements of `vector`, from `first` on.
  Value elements(Value vector, int64_t first, int64_t count);
};

/// A tensor in memory: an argument of the kernel, or a buffer on the stack.
struct Argument {
  Value pointer;
  RankedTensorType type;
  /// The number of elements from one row of a tile to the next; null where the tensor is dense.
  Value stride = {};
};

/// The kernel that is being emitted. The classes that emit it have state of their own and share only this.
struct KernelFrame {
  KernelFrame(func::FuncOp kernel, Location loc, const TargetCpu &cpu, int64_t vectorAlignment = 0)
      : kernel(kernel), b(loc, kernel.getContext()), cpu(cpu), vectorLanes(cpu.vectorBits / 32),
        vectorAlignment(vectorAlignment) {}

  /// Output number `number` of the kernel in memory.
  const Argument &output(unsigned number) const { return arguments[inputCount + number]; }

  func::FuncOp kernel;
  KernelBuilder b;
  const TargetCpu &cpu;
  /// The number of f32 in a vector register.
  int64_t vectorLanes;
  /// The alignment of every argument in bytes, as far as accesses use it; 0 where they use that of an element alone.
  int64_t vectorAlignment;
  /// The inputs, then the outputs.
  SmallVector<Argument> arguments;
  unsigned inputCount = 0;
  /// The nest that is being emitted.
  const Nest *nest = nullptr;
  /// Whether an operation had no code generation. A diagnostic was emitted then.
  bool unsupported = false;
};

/// How many rows of its results the kernel computes, an i64, where it leaves rows out; null elsewhere. The arguments of
/// the frame are known.
Value loadValidRows(KernelFrame &frame);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_KERNELFRAME_H
