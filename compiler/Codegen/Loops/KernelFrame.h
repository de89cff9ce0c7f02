//===- KernelFrame.h - What all parts of a kernel's emission see
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_KERNELFRAME_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_KERNELFRAME_H

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

inline SmallVector<const Expr *> valuesOf(ArrayRef<Nest::Store> stores) {
  return llvm::to_vector(llvm::map_range(stores, [](const Nest::Store &store) { return store.value; }));
}

/// Adds operations in one place, at one location, and constants among them.
class KernelBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value constant(int64_t number) { return arith::ConstantOp::create(*this, getI64IntegerAttr(number)); }
  Value i32(int64_t number) { return arith::ConstantOp::create(*this, getI32IntegerAttr(number)); }
  Value toI64(Value value) { return arith::ExtUIOp::create(*this, getI64Type(), value); }

  /// A vector of `count` equal elements; one of them for 0.
  Value splat(TypedAttr element, int64_t count);

  /// `count` elements of `vector`, from `first` on.
  Value elements(Value vector, int64_t first, int64_t count);
};

/// A tensor in memory: an argument of the kernel, or a buffer on the stack.
struct Argument {
  Value pointer;
  RankedTensorType type;
  /// Elements between rows of a tile; null where the tensor is dense.
  Value stride = {};
};

/// The kernel that is being emitted. Parts have state of their own and share only this.
struct KernelFrame {
  KernelFrame(func::FuncOp kernel, Location loc, const TargetCpu &cpu, int64_t vectorAlignment = 0)
      : kernel(kernel), b(loc, kernel.getContext()), cpu(cpu), vectorLanes(cpu.vectorBits / 32),
        vectorAlignment(vectorAlignment) {}

  /// Where the kernel's output `number` lies.
  const Argument &output(unsigned number) const { return arguments[inputCount + number]; }

  func::FuncOp kernel;
  KernelBuilder b;
  const TargetCpu &cpu;
  /// f32 in a register.
  int64_t vectorLanes;
  /// What divides the address of every argument, in bytes, and is used of it; 0: the size of an element.
  int64_t vectorAlignment;
  /// Inputs, then outputs.
  SmallVector<Argument> arguments;
  unsigned inputCount = 0;
  /// The nest that is being emitted.
  const Nest *nest = nullptr;
  /// An operation had no code generation, which was diagnosed.
  bool unsupported = false;
};

/// How many rows of its results the kernel computes, an i64, where it leaves rows out; null elsewhere. The arguments of
/// the frame are known.
Value loadValidRows(KernelFrame &frame);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_KERNELFRAME_H
