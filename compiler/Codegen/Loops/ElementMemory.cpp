//===- ElementMemory.cpp - Elements in memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/ElementMemory.h"
#include "compiler/Codegen/F16Conversion.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace bowline::codegen;

/// Stores of fewer bytes are not made non-temporal.
static constexpr int64_t kMinStreamedBytes = 16;

Value ElementMemory::address(const Argument &argument, Type element, Value index) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (auto vector = dyn_cast<VectorType>(index.getType()))
    pointer = VectorType::get(vector.getShape(), pointer);
  return LLVM::GEPOp::create(b, pointer, element, argument.pointer, ArrayRef<LLVM::GEPArg>{index});
}

Value ElementMemory::clamp(Value index, int64_t low, int64_t high) {
  auto bound = [&](int64_t edge) {
    auto vector = dyn_cast<VectorType>(index.getType());
    return b.splat(b.getI64IntegerAttr(edge), vector ? vector.getNumElements() : 0);
  };
  index = arith::MaxSIOp::create(b, index, bound(low));
  return arith::MinSIOp::create(b, index, bound(high));
}

unsigned ElementMemory::alignmentOf(const Argument &argument, AffineExpr index) {
  int64_t bytes = memoryType(argument.type.getElementType()).getIntOrFloatBitWidth() / 8;
  if (frame.vectorAlignment == 0 || indices.lanes.dim == 0)
    return bytes;
  // The lanes begin at a multiple of their number.
  AffineExpr dim = getAffineDimExpr(llvm::countr_zero(indices.lanes.dim), b.getContext());
  int64_t divisor = index.replace(dim, dim * indices.lanes.count).getLargestKnownDivisor();
  int64_t known = divisor == 0 ? frame.vectorAlignment : (divisor & -divisor) * bytes;
  return static_cast<unsigned>(std::min(known, frame.vectorAlignment));
}

Value ElementMemory::loadVector(const Argument &argument, Value pointer, Value mask, unsigned alignment) {
  Type element = memoryType(argument.type.getElementType()), type = laneType(element, indices.lanes.count);
  if (alignment == 0)
    alignment = element.getIntOrFloatBitWidth() / 8;
  if (!mask)
    return fromMemory(LLVM::LoadOp::create(b, type, pointer, alignment), argument.type.getElementType());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return fromMemory(LLVM::MaskedLoadOp::create(b, type, pointer, mask, zero, alignment),
                    argument.type.getElementType());
}

Type ElementMemory::sameLanes(Value like, Type element) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return laneType(element, vector ? vector.getNumElements() : 0);
}

Value ElementMemory::integerLike(Value like, int64_t number) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return b.splat(b.getIntegerAttr(getElementTypeOrSelf(like.getType()), number), vector ? vector.getNumElements() : 0);
}

Value ElementMemory::fromMemory(Value raw, Type elementType) {
  if (elementType.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, raw, integerLike(raw, 0));
  if (elementType.isBF16()) {
    Value bits = arith::ExtUIOp::create(b, sameLanes(raw, b.getI32Type()), raw);
    bits = arith::ShLIOp::create(b, bits, integerLike(bits, 16));
    return arith::BitcastOp::create(b, sameLanes(raw, b.getF32Type()), bits);
  }
  if (elementType.isF16())
    return frame.cpu.hasF16() ? arith::ExtFOp::create(b, sameLanes(raw, b.getF32Type()), raw) : widenF16(b, raw);
  return raw;
}

Value ElementMemory::toMemory(Value computed, Type elementType) {
  if (elementType.isInteger(1))
    return arith::ExtUIOp::create(b, sameLanes(computed, b.getI8Type()), computed);
  if (elementType.isBF16() && frame.cpu.hasBf16) {
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
    return frame.cpu.hasF16() ? arith::TruncFOp::create(b, sameLanes(computed, elementType), computed)
                              : roundToF16(b, computed);
  return computed;
}

void ElementMemory::storeVector(const Argument &argument, Value pointer, Value computed, bool isStreamed,
                                unsigned alignment) {
  unsigned elementBytes = memoryType(argument.type.getElementType()).getIntOrFloatBitWidth() / 8;
  if (alignment == 0)
    alignment = elementBytes;
  Value raw = toMemory(computed, argument.type.getElementType());
  if (indices.lanes.mask)
    LLVM::MaskedStoreOp::create(b, raw, pointer, indices.lanes.mask, alignment);
  else if (isStreamed && indices.lanes.count * elementBytes >= kMinStreamedBytes)
    streamVector(argument.type.getElementType(), pointer, raw);
  else
    LLVM::StoreOp::create(b, raw, pointer, alignment);
}

void ElementMemory::streamVector(Type elementType, Value pointer, Value raw) {
  streams = true;
  auto type = cast<VectorType>(raw.getType());
  if (!elementType.isBF16() || !frame.cpu.hasBf16) {
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    LLVM::StoreOp::create(b, raw, pointer, std::min(bytes, kCacheLineBytes), /*isVolatile=*/false,
                          /*isNonTemporal=*/true);
    return;
  }
  // LLVM 22 drops the non-temporal hint from stores of vectors of bf16, also where they are cast to other types.
  int64_t width = std::min<int64_t>(type.getNumElements(), frame.cpu.vectorBits / 16);
  for (int64_t first = 0; first < type.getNumElements(); first += width) {
    Value part = raw;
    if (width < type.getNumElements())
      part = b.elements(raw, first, width);
    Value to = LLVM::GEPOp::create(b, pointer.getType(), type.getElementType(), pointer,
                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(first)});
    LLVM::InlineAsmOp::create(b, TypeRange(), ValueRange{to, part}, "vmovntps $1, ($0)", "r,v,~{memory}",
                              /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                              /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr);
  }
}
