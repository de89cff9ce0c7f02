//===- MathExpansion.cpp - Transcendental functions as vector arithmetic
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/MathExpansion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace bowline;

namespace {

Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

/// Arithmetic on f32 scalars or vectors of one shape.
class Lanes {
public:
  Lanes(ImplicitLocOpBuilder &b, Type type) : b(b), type(type), integer(withElement(type, b.getI32Type())) {}

  Value constant(double value) { return splat(type, b.getF32FloatAttr(value)); }
  Value constantInt(int32_t value) { return splat(integer, b.getI32IntegerAttr(value)); }

  Value add(Value lhs, Value rhs) { return arith::AddFOp::create(b, lhs, rhs, arith::FastMathFlags::contract); }
  Value sub(Value lhs, Value rhs) { return arith::SubFOp::create(b, lhs, rhs, arith::FastMathFlags::contract); }
  Value mul(Value lhs, Value rhs) { return arith::MulFOp::create(b, lhs, rhs, arith::FastMathFlags::contract); }
  Value div(Value lhs, Value rhs) { return arith::DivFOp::create(b, lhs, rhs); }
  Value neg(Value value) { return arith::NegFOp::create(b, value); }
  Value abs(Value value) { return math::AbsFOp::create(b, value); }
  /// Both return a NaN operand.
  Value max(Value lhs, Value rhs) { return arith::MaximumFOp::create(b, lhs, rhs); }
  Value min(Value lhs, Value rhs) { return arith::MinimumFOp::create(b, lhs, rhs); }
  Value select(Value condition, Value lhs, Value rhs) { return arith::SelectOp::create(b, condition, lhs, rhs); }
  Value compare(arith::CmpFPredicate predicate, Value lhs, double rhs) {
    return arith::CmpFOp::create(b, predicate, lhs, constant(rhs));
  }
  Value copySign(Value magnitude, Value sign) { return math::CopySignOp::create(b, magnitude, sign); }

  Value toBits(Value value) { return arith::BitcastOp::create(b, integer, value); }
  Value fromBits(Value value) { return arith::BitcastOp::create(b, type, value); }
  Value addInt(Value lhs, Value rhs) { return arith::AddIOp::create(b, lhs, rhs); }
  Value subInt(Value lhs, Value rhs) { return arith::SubIOp::create(b, lhs, rhs); }
  Value shiftLeft(Value value, int amount) { return arith::ShLIOp::create(b, value, constantInt(amount)); }
  Value shiftRight(Value value, int amount) { return arith::ShRSIOp::create(b, value, constantInt(amount)); }

  /// Coefficients from the constant term on.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value result = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      result = add(mul(result, x), constant(coefficient));
    return result;
  }

  Value exp(Value x);
  Value log(Value x);
  Value tanh(Value x);
  Value erf(Value x);

private:
  Value splat(Type to, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(to))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, Attribute(value)));
    return arith::ConstantOp::create(b, value);
  }
  /// 2^exponent for an exponent of a normal number.
  Value powerOfTwo(Value exponent) { return fromBits(shiftLeft(addInt(exponent, constantInt(127)), 23)); }

  ImplicitLocOpBuilder &b;
  Type type, integer;
};

/// log 2 in two parts: the first has trailing zeros, so that its product with an exponent is exact without a fused
/// multiply-add too.
constexpr double kLn2High = 0.693359375, kLn2Low = -2.12194440054690583e-4;

// x = n log 2 + r with |r| <= log(2) / 2; the Taylor polynomial of degree 7 is within 2^-27 there.
Value Lanes::exp(Value x) {
  // Beyond these bounds the result is zero or infinite, and n would not fit in an exponent.
  Value bounded = min(max(x, constant(-104)), constant(89));
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  constexpr double kRound = 12582912;
  Value shifted = add(mul(bounded, constant(1.4426950408889634)), constant(kRound));
  Value n = arith::SubFOp::create(b, shifted, constant(kRound));
  Value exponent = subInt(toBits(shifted), constantInt(0x4B400000));
  Value r = sub(sub(bounded, mul(n, constant(kLn2High))), mul(n, constant(kLn2Low)));
  Value tail = polynomial(r, {0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040});
  Value power = add(add(mul(mul(r, r), tail), r), constant(1));
  // In two steps: n may lie outside of the exponents of normal numbers, and the result may be subnormal.
  Value half = shiftRight(exponent, 1);
  return mul(mul(power, powerOfTwo(half)), powerOfTwo(subInt(exponent, half)));
}

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f): log(1 + f) = 2 artanh(s)
// = f - f^2/2 + s (f^2/2 + R), R = 2 s^2/3 + 2 s^4/5 + ...
Value Lanes::log(Value x) {
  Value isSubnormal = compare(arith::CmpFPredicate::OLT, x, std::numeric_limits<float>::min());
  Value normal = select(isSubnormal, mul(x, constant(8388608)), x);
  Value bits = toBits(normal);
  Value exponent = shiftRight(subInt(bits, constantInt(0x3F3504F3)), 23);
  Value fraction = arith::SubFOp::create(b, fromBits(subInt(bits, shiftLeft(exponent, 23))), constant(1));
  exponent = subInt(exponent, select(isSubnormal, constantInt(23), constantInt(0)));
  Value e = arith::SIToFPOp::create(b, type, exponent);

  Value s = div(fraction, add(constant(2), fraction)), square = mul(s, s);
  Value r = mul(square, polynomial(square, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9}));
  Value halfSquare = mul(constant(0.5), mul(fraction, fraction));
  Value correction = add(mul(s, add(halfSquare, r)), mul(e, constant(kLn2Low)));
  Value result = add(mul(e, constant(kLn2High)), sub(fraction, sub(halfSquare, correction)));

  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  result = select(compare(arith::CmpFPredicate::OEQ, x, kInfinity), x, result);
  result = select(compare(arith::CmpFPredicate::OEQ, x, 0), constant(-kInfinity), result);
  return select(compare(arith::CmpFPredicate::ULT, x, 0), constant(std::numeric_limits<float>::quiet_NaN()), result);
}

// A polynomial near zero, 1 - 2 / (exp(2 |x|) + 1) elsewhere. Coefficients: Chebyshev fit, within 2e-8 relative.
Value Lanes::tanh(Value x) {
  Value magnitude = abs(x), square = mul(x, x);
  Value odd =
      polynomial(square, {-0.333333289441, 0.13332769737, -0.0538509095785, 0.0209971789991, -0.00609671416591});
  Value small = add(mul(mul(x, square), odd), x);
  Value power = add(exp(add(magnitude, magnitude)), constant(1));
  Value large = copySign(sub(constant(1), div(constant(2), power)), x);
  return select(compare(arith::CmpFPredicate::OLT, magnitude, 0.625), small, large);
}

// Chebyshev fits: erf(x) / x in x^2 below 1 (within 4e-11), -log(erfc(x)) on [1, 4] (within 2e-8); 1 beyond.
Value Lanes::erf(Value x) {
  Value magnitude = abs(x), square = mul(x, x);
  Value small =
      mul(x, polynomial(square, {1.12837916706, -0.37612638468, 0.112837824952, -0.0268654307277, 0.00522103180786,
                                 -0.000848408040554, 0.000112659590256, -9.66704457149e-6}));
  Value bounded = min(magnitude, constant(4));
  Value logarithm =
      polynomial(bounded, {-0.000320138049678, 1.13023343484, 0.631826051559, 0.110080082949, -0.0264211360057,
                           0.00475959629327, -0.000596805625661, 4.60580426892e-5, -1.63715141459e-6});
  Value large = copySign(sub(constant(1), exp(neg(logarithm))), x);
  return select(compare(arith::CmpFPredicate::OLT, magnitude, 1), small, large);
}

/// Calls the C library's function of f64 for each element.
Value callPerElement(ImplicitLocOpBuilder &b, StringRef name, ValueRange operands) {
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  Type f64 = b.getF64Type();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    SmallVector<Type> types(operands.size(), f64);
    LLVM::LLVMFuncOp::create(b, name, LLVM::LLVMFunctionType::get(f64, types));
  }
  Type type = operands[0].getType();
  auto callScalar = [&](ValueRange scalars) -> Value {
    SmallVector<Value> wide;
    for (Value scalar : scalars)
      wide.push_back(scalar.getType() == f64 ? scalar : arith::ExtFOp::create(b, f64, scalar));
    Value result = LLVM::CallOp::create(b, f64, name, wide).getResult();
    return getElementTypeOrSelf(type) == f64 ? result : arith::TruncFOp::create(b, getElementTypeOrSelf(type), result);
  };
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return callScalar(operands);
  Value result = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (int64_t i = 0; i < vector.getNumElements(); ++i) {
    SmallVector<Value> scalars;
    for (Value operand : operands)
      scalars.push_back(vector::ExtractOp::create(b, operand, i));
    result = vector::InsertOp::create(b, callScalar(scalars), result, i);
  }
  return result;
}

StringRef libraryName(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("math.cos", "cos")
      .Case("math.erf", "erf")
      .Case("math.exp", "exp")
      .Case("math.log", "log")
      .Case("math.powf", "pow")
      .Case("math.sin", "sin")
      .Case("math.tanh", "tanh")
      .Default("");
}

} // namespace

Value codegen::expandMath(ImplicitLocOpBuilder &b, Operation *op, ValueRange operands) {
  Type type = operands[0].getType();
  if (isa<math::RsqrtOp>(op)) {
    auto one = b.getFloatAttr(getElementTypeOrSelf(type), 1.0);
    auto vector = dyn_cast<VectorType>(type);
    Value numerator = vector ? arith::ConstantOp::create(b, DenseElementsAttr::get(vector, Attribute(one)))
                             : arith::ConstantOp::create(b, one);
    return arith::DivFOp::create(b, numerator, math::SqrtOp::create(b, operands[0]));
  }
  if (isa<math::AbsFOp, math::SqrtOp, math::CopySignOp, math::FloorOp, math::CeilOp, math::RoundEvenOp, math::TruncOp>(
          op)) {
    IRMapping mapping;
    mapping.map(op->getOperands(), operands);
    Operation *copy = b.clone(*op, mapping);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }
  if (getElementTypeOrSelf(type).isF32()) {
    Lanes lanes(b, type);
    Value result = llvm::TypeSwitch<Operation *, Value>(op)
                       .Case([&](math::ExpOp) { return lanes.exp(operands[0]); })
                       .Case([&](math::LogOp) { return lanes.log(operands[0]); })
                       .Case([&](math::TanhOp) { return lanes.tanh(operands[0]); })
                       .Case([&](math::ErfOp) { return lanes.erf(operands[0]); })
                       .Default([](Operation *) { return Value(); });
    if (result)
      return result;
  }
  StringRef name = libraryName(op);
  return name.empty() ? Value() : callPerElement(b, name, operands);
}
