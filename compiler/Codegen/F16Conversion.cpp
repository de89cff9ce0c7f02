//===- F16Conversion.cpp - f16 without instructions for it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/F16Conversion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using arith::CmpIPredicate;

namespace {

/// Arithmetic on the bits of f32, lane by lane.
class BitArithmetic {
public:
  BitArithmetic(ImplicitLocOpBuilder &b, Type lanes) : b(b), lanes(lanes) {}

  Type like(Type element) const {
    auto vector = dyn_cast<VectorType>(lanes);
    return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
  }
  Value constant(Type element, TypedAttr value) const {
    if (auto vector = dyn_cast<VectorType>(like(element)))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return arith::ConstantOp::create(b, value);
  }
  Value bits(uint32_t number) const {
    return constant(b.getI32Type(), b.getI32IntegerAttr(static_cast<int32_t>(number)));
  }
  Value number(float number) const { return constant(b.getF32Type(), b.getF32FloatAttr(number)); }

  Value toFloat(Value bits) const { return arith::BitcastOp::create(b, like(b.getF32Type()), bits); }
  Value toBits(Value number) const { return arith::BitcastOp::create(b, like(b.getI32Type()), number); }
  Value add(Value x, uint32_t y) const { return arith::AddIOp::create(b, x, bits(y)); }
  Value mask(Value x, uint32_t y) const { return arith::AndIOp::create(b, x, bits(y)); }
  Value with(Value x, uint32_t y) const { return arith::OrIOp::create(b, x, bits(y)); }
  Value left(Value x, uint32_t by) const { return arith::ShLIOp::create(b, x, bits(by)); }
  Value right(Value x, uint32_t by) const { return arith::ShRUIOp::create(b, x, bits(by)); }
  Value below(Value x, uint32_t y, Value ifBelow, Value otherwise) const {
    Value isBelow = arith::CmpIOp::create(b, CmpIPredicate::ult, x, bits(y));
    return arith::SelectOp::create(b, isBelow, ifBelow, otherwise);
  }

private:
  ImplicitLocOpBuilder &b;
  Type lanes;
};

} // namespace

Value bowline::codegen::widenF16(ImplicitLocOpBuilder &b, Value half) {
  BitArithmetic a(b, half.getType());
  Value raw = arith::BitcastOp::create(b, a.like(b.getI16Type()), half);
  Value bits = arith::ExtUIOp::create(b, a.like(b.getI32Type()), raw);
  // The mantissa moves to its place under an exponent that is 112 too small.
  Value magnitude = a.left(a.mask(bits, 0x7FFF), 13), sign = a.left(a.mask(bits, 0x8000), 16);
  // A subnormal half has no leading one. The exponent of 2^-14 gives the f32 a leading one, which is subtracted again.
  Value lifted = a.toFloat(a.add(magnitude, 113U << 23));
  Value subnormal = a.toBits(arith::SubFOp::create(b, lifted, a.number(0x1p-14F)));
  Value finite = a.below(magnitude, 1U << 23, subnormal, a.add(magnitude, 112U << 23));
  Value special = a.below(magnitude, 0x0F800001, a.bits(0x7F800000), a.with(magnitude, 0x7FC00000));
  return a.toFloat(arith::OrIOp::create(b, a.below(magnitude, 0x0F800000, finite, special), sign));
}

Value bowline::codegen::roundToF16(ImplicitLocOpBuilder &b, Value value) {
  BitArithmetic a(b, value.getType());
  Value bits = a.toBits(value);
  Value magnitude = a.mask(bits, 0x7FFFFFFF), sign = a.mask(a.right(bits, 16), 0x8000);
  // The sum with 1/2 is rounded where the last place of halves below 2^-14 is, and its low bits are theirs.
  Value shifted = arith::AddFOp::create(b, a.toFloat(magnitude), a.number(0.5F));
  Value subnormal = a.add(a.toBits(shifted), -0x3F000000U);
  Value odd = a.mask(a.right(magnitude, 13), 1);
  Value normal = a.right(arith::AddIOp::create(b, a.add(magnitude, 0xFFF - (112U << 23)), odd), 13);
  Value finite = a.below(magnitude, 0x38800000, subnormal, normal);
  Value nan = a.with(a.mask(a.right(magnitude, 13), 0x1FF), 0x7E00);
  Value special = a.below(magnitude, 0x7F800001, a.bits(0x7C00), nan);
  // 65520 lies in the middle between the largest half and 2^16.
  Value half = arith::OrIOp::create(b, a.below(magnitude, 0x477FF000, finite, special), sign);
  Value raw = arith::TruncIOp::create(b, a.like(b.getI16Type()), half);
  return arith::BitcastOp::create(b, a.like(b.getF16Type()), raw);
}
