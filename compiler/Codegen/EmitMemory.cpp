//===- EmitMemory.cpp - Loads and stores
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/F16Conversion.h"
#include "compiler/Codegen/KernelEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace bowline::codegen;

/// Stores of fewer bytes are streamed a few at a time.
static constexpr int64_t kMinStreamedBytes = 16;

Type bowline::codegen::memoryType(Type elementType) {
  Builder b(elementType.getContext());
  if (elementType.isInteger(1))
    return b.getI8Type();
  if (elementType.isBF16())
    return b.getI16Type();
  return elementType;
}

Value KernelEmitter::address(const Argument &argument, Type element, Value index) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (auto vector = dyn_cast<VectorType>(index.getType()))
    pointer = VectorType::get(vector.getShape(), pointer);
  return LLVM::GEPOp::create(b, pointer, element, argument.pointer, ArrayRef<LLVM::GEPArg>{index});
}

Value KernelEmitter::clamp(Value index, int64_t low, int64_t high) {
  auto bound = [&](int64_t edge) {
    auto vector = dyn_cast<VectorType>(index.getType());
    return splat(b.getI64IntegerAttr(edge), vector ? vector.getNumElements() : 0);
  };
  index = arith::MaxSIOp::create(b, index, bound(low));
  return arith::MinSIOp::create(b, index, bound(high));
}

unsigned KernelEmitter::alignmentOf(const Argument &argument, AffineExpr) {
  return memoryType(argument.type.getElementType()).getIntOrFloatBitWidth() / 8;
}

Value KernelEmitter::loadVector(const Argument &argument, Value pointer, Value mask, unsigned alignment) {
  Type element = memoryType(argument.type.getElementType()), type = laneType(element, lanes.count);
  if (alignment == 0)
    alignment = element.getIntOrFloatBitWidth() / 8;
  if (!mask)
    return fromMemory(LLVM::LoadOp::create(b, type, pointer, alignment), argument.type.getElementType());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return fromMemory(LLVM::MaskedLoadOp::create(b, type, pointer, mask, zero, alignment),
                    argument.type.getElementType());
}

Value KernelEmitter::load(const Expr *expr) {
  const Argument &argument = arguments[expr->argument];
  Type element = memoryType(argument.type.getElementType());
  unsigned alignment = element.getIntOrFloatBitWidth() / 8;
  if (argument.stride) {
    Value row = arith::MulIOp::create(b, dimValue(nest->outer[0]), argument.stride);
    Value index = arith::AddIOp::create(b, row, dimValue(*nest->segments[0].dim));
    return loadVector(argument, address(argument, element, index), lanes.mask);
  }
  if (auto it = squares.find(expr); it != squares.end())
    return loadSquare(it->second);
  // Under a condition an index may be outside of the tensor; what is read then is not used.
  int64_t last = argument.type.getNumElements() - 1;
  auto [low, high] = nest->space.range(expr->index);
  bool mayBeOutside = low < 0 || high > last;
  if (!isVarying(expr)) {
    Value index = scalarIndex(expr->index);
    if (mayBeOutside)
      index = clamp(index, 0, last);
    return fromMemory(LLVM::LoadOp::create(b, element, address(argument, element, index), alignment),
                      argument.type.getElementType());
  }
  auto type = VectorType::get({lanes.count}, element);
  if (IndexSpace::coefficient(expr->index, llvm::countr_zero(lanes.dim)) == 1) {
    Value mask = lanes.mask;
    if (mayBeOutside) {
      Value indices = vectorIndex(expr->index, b.getI64Type());
      auto within = [&](arith::CmpIPredicate predicate, int64_t edge) {
        Value holds = arith::CmpIOp::create(b, predicate, indices, splat(b.getI64IntegerAttr(edge), lanes.count));
        mask = mask ? arith::AndIOp::create(b, mask, holds) : holds;
      };
      if (low < 0)
        within(arith::CmpIPredicate::sge, 0);
      if (high > last)
        within(arith::CmpIPredicate::sle, last);
    }
    return loadVector(argument, address(argument, element, scalarIndex(expr->index)), mask,
                      alignmentOf(argument, expr->index));
  }
  Value index = vectorIndex(expr->index, b.getI64Type());
  if (mayBeOutside)
    index = clamp(index, 0, last);
  Value all = lanes.mask ? lanes.mask : splat(b.getBoolAttr(true), lanes.count);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return fromMemory(LLVM::masked_gather::create(b, type, address(argument, element, index), all, zero, alignment),
                    argument.type.getElementType());
}

Type KernelEmitter::sameLanes(Value like, Type element) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return laneType(element, vector ? vector.getNumElements() : 0);
}

Value KernelEmitter::integerLike(Value like, int64_t number) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return splat(b.getIntegerAttr(getElementTypeOrSelf(like.getType()), number), vector ? vector.getNumElements() : 0);
}

Value KernelEmitter::fromMemory(Value raw, Type elementType) {
  if (elementType.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, raw, integerLike(raw, 0));
  if (elementType.isBF16()) {
    Value bits = arith::ExtUIOp::create(b, sameLanes(raw, b.getI32Type()), raw);
    bits = arith::ShLIOp::create(b, bits, integerLike(bits, 16));
    return arith::BitcastOp::create(b, sameLanes(raw, b.getF32Type()), bits);
  }
  if (elementType.isF16())
    return cpu.hasF16() ? arith::ExtFOp::create(b, sameLanes(raw, b.getF32Type()), raw) : widenF16(b, raw);
  return raw;
}

Value KernelEmitter::toMemory(Value computed, Type elementType) {
  if (elementType.isInteger(1))
    return arith::ExtUIOp::create(b, sameLanes(computed, b.getI8Type()), computed);
  if (elementType.isBF16() && cpu.hasBf16) {
    Value rounded = arith::TruncFOp::create(b, sameLanes(computed, elementType), computed);
    return arith::BitcastOp::create(b, sameLanes(computed, b.getI16Type()), rounded);
  }
  if (elementType.isBF16()) {
    // Round to nearest even in the integer that the number's bits are; a NaN stays one.
    Value bits = arith::BitcastOp::create(b, sameLanes(computed, b.getI32Type()), computed);
    Value upper = arith::ShRUIOp::create(b, bits, integerLike(bits, 16));
    Value odd = arith::AndIOp::create(b, upper, integerLike(bits, 1));
    Value rounded = arith::AddIOp::create(b, bits, arith::AddIOp::create(b, odd, integerLike(bits, 0x7FFF)));
    rounded = arith::ShRUIOp::create(b, rounded, integerLike(bits, 16));
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, computed, computed);
    Value quiet = arith::OrIOp::create(b, upper, integerLike(bits, 0x40));
    return arith::TruncIOp::create(b, sameLanes(computed, b.getI16Type()),
                                   arith::SelectOp::create(b, isNan, quiet, rounded));
  }
  if (elementType.isF16())
    return cpu.hasF16() ? arith::TruncFOp::create(b, sameLanes(computed, elementType), computed)
                        : roundToF16(b, computed);
  return computed;
}

void KernelEmitter::store(const Nest::Store &target, Value computed) {
  insertHere();
  const Argument &argument = arguments[inputCount + target.output];
  Value pointer = address(argument, memoryType(argument.type.getElementType()), scalarIndex(target.index));
  computed = toLanes(computed);
  unsigned alignment = lanes.count ? alignmentOf(argument, target.index) : 0;
  if (target.isPartialSum)
    computed = arith::AddFOp::create(b, loadVector(argument, pointer, lanes.mask, alignment), computed,
                                     arith::FastMathFlags::contract);
  storeVector(argument, pointer, computed, target.isStreamed, alignment);
}

Value KernelEmitter::elements(Value vector, int64_t first, int64_t count) {
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq(first, first + count));
  return vector::ShuffleOp::create(b, vector, vector, numbers);
}

void KernelEmitter::storeVector(const Argument &argument, Value pointer, Value computed, bool isStreamed,
                                unsigned alignment) {
  unsigned elementBytes = memoryType(argument.type.getElementType()).getIntOrFloatBitWidth() / 8;
  if (alignment == 0)
    alignment = elementBytes;
  Value raw = toMemory(computed, argument.type.getElementType());
  if (lanes.mask)
    LLVM::MaskedStoreOp::create(b, raw, pointer, lanes.mask, alignment);
  else if (isStreamed && lanes.count * elementBytes >= kMinStreamedBytes)
    streamVector(argument.type.getElementType(), pointer, raw);
  else
    LLVM::StoreOp::create(b, raw, pointer, alignment);
}

void KernelEmitter::streamVector(Type elementType, Value pointer, Value raw) {
  streams = true;
  auto type = cast<VectorType>(raw.getType());
  if (!elementType.isBF16() || !cpu.hasBf16) {
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    LLVM::StoreOp::create(b, raw, pointer, std::min(bytes, kCacheLineBytes), /*isVolatile=*/false,
                          /*isNonTemporal=*/true);
    return;
  }
  // LLVM 22 drops the hint from stores of vectors of bf16, which it recognises behind other types too.
  int64_t width = std::min<int64_t>(type.getNumElements(), cpu.vectorBits / 16);
  for (int64_t first = 0; first < type.getNumElements(); first += width) {
    Value part = raw;
    if (width < type.getNumElements())
      part = elements(raw, first, width);
    Value to = LLVM::GEPOp::create(b, pointer.getType(), type.getElementType(), pointer,
                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(first)});
    LLVM::InlineAsmOp::create(b, TypeRange(), ValueRange{to, part}, "vmovntps $1, ($0)", "r,v,~{memory}",
                              /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                              /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr);
  }
}

void KernelEmitter::allocateKept() {
  insertHere();
  Type element = nest->kept->inReduction->type, pointer = LLVM::LLVMPointerType::get(b.getContext());
  int64_t size = nest->space.size(nest->kept->inner);
  Value row = LLVM::AllocaOp::create(b, pointer, element, constant(size), /*alignment=*/64);
  keptRow = {row, RankedTensorType::get({size}, element), nullptr};
}

Value KernelEmitter::loadKept() {
  Type element = keptRow.type.getElementType();
  return loadVector(keptRow, address(keptRow, element, dimValue(nest->kept->inner)), lanes.mask);
}

void KernelEmitter::storeKept(Value computed) {
  Type element = keptRow.type.getElementType();
  storeVector(keptRow, address(keptRow, element, dimValue(nest->kept->reducedDim)), computed);
}
