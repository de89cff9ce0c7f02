//===- MathExpansion.cpp - Transcendental functions as vector arithmetic
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/MathExpansion.h"
#include "dialects/Graph/FusionRole.h"
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
using codegen::TargetCpu;

namespace {

Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

/// Arithmetic on f32 scalars or vectors of one shape.
class LaneMath {
public:
  LaneMath(ImplicitLocOpBuilder &b, const TargetCpu &cpu, Type type)
      : b(b), cpu(cpu), type(type), integer(withElement(type, b.getI32Type())) {}

  Value constant(double value) { return splat(type, b.getF32FloatAttr(value)); }
  Value constantInt(int32_t value) { return splat(integer, b.getI32IntegerAttr(value)); }

  Value add(Value lhs, Value rhs) { return arith::AddFOp::create(b, lhs, rhs, arith::FastMathFlags::contract); }
  Value sub(Value lhs, Value rhs) { return arith::SubFOp::create(b, lhs, rhs, arith::FastMathFlags::contract); }
  Value mul(Value lhs, Value rhs) { return arith::MulFOp::create(b, lhs, rhs, arith::FastMathFlags::contract); }
  Value div(Value lhs, Value rhs) { return arith::DivFOp::create(b, lhs, rhs); }
  Value neg(Value value) { return arith::NegFOp::create(b, value); }
  Value abs(Value value) { return math::AbsFOp::create(b, value); }
  /// The processor's maximum and minimum, in the order of operands that returns a NaN in `value`.
  Value atLeast(Value value, double bound) {
    Value limit = constant(bound);
    return select(arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, limit, value), limit, value);
  }
  Value atMost(Value value, double bound) {
    Value limit = constant(bound);
    return select(arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, limit, value), limit, value);
  }
  Value select(Value condition, Value lhs, Value rhs) { return arith::SelectOp::create(b, condition, lhs, rhs); }
  Value compare(arith::CmpFPredicate predicate, Value lhs, double rhs) {
    return arith::CmpFOp::create(b, predicate, lhs, constant(rhs));
  }
  Value copySign(Value magnitude, Value sign) { return math::CopySignOp::create(b, magnitude, sign); }

  Value toBits(Value value) { return arith::BitcastOp::create(b, integer, value); }
  Value fromBits(Value value) { return arith::BitcastOp::create(b, type, value); }
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

  /// The exponential of x. With `neverAbove`, the result may be anything where x > 0.
  Value exp(Value x, bool neverAbove);
  /// 1 - exp(-x) for 0 <= x < 86 or NaN, exact to rounding near zero too.
  Value oneMinusExp(Value x);
  Value log(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  /// The error function for operands of graph::kBesideOne: its error matters only in comparison with one.
  Value erfBesideOne(Value x);

private:
  Value splat(Type to, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(to))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, Attribute(value)));
    return arith::ConstantOp::create(b, value);
  }
  /// Whether one instruction multiplies by a power of two: AVX-512 has it, for vectors.
  bool hasScale() const {
    auto vector = dyn_cast<VectorType>(type);
    return cpu.vectorBits == 512 && vector && vector.getNumElements() >= 4;
  }
  bool hasFma() const { return cpu.level != "x86-64-v2"; }
  /// value * 2^n for a whole number n, rounded once.
  Value scale(Value value, Value n);

  ImplicitLocOpBuilder &b;
  const TargetCpu &cpu;
  Type type, integer;
};

Value LaneMath::scale(Value value, Value n) {
  int64_t count = cast<VectorType>(type).getNumElements(), width = std::min<int64_t>(count, 16);
  auto part = VectorType::get({width}, b.getF32Type());
  Type maskType = b.getIntegerType(std::max<int64_t>(width, 8));
  Value all = arith::ConstantOp::create(b, b.getIntegerAttr(maskType, -1));
  StringAttr name = b.getStringAttr("llvm.x86.avx512.mask.scalef.ps." + std::to_string(width * 32));
  SmallVector<Value> parts;
  for (int64_t first = 0; first < count; first += width) {
    SmallVector<int64_t> lanes = llvm::to_vector(llvm::seq(first, first + width));
    auto take = [&](Value whole) -> Value {
      return width == count ? whole : vector::ShuffleOp::create(b, part, whole, whole, lanes);
    };
    Value significand = take(value);
    SmallVector<Value> operands = {significand, take(n), significand, all};
    if (width == 16) // rounding as the processor is set to
      operands.push_back(arith::ConstantOp::create(b, b.getI32IntegerAttr(4)));
    parts.push_back(LLVM::CallIntrinsicOp::create(b, part, name, operands).getResult(0));
  }
  for (; parts.size() > 1; width *= 2) {
    SmallVector<int64_t> lanes = llvm::to_vector(llvm::seq<int64_t>(0, 2 * width));
    SmallVector<Value> joined;
    for (size_t i = 0; i < parts.size(); i += 2)
      joined.push_back(
          vector::ShuffleOp::create(b, VectorType::get({2 * width}, b.getF32Type()), parts[i], parts[i + 1], lanes));
    parts = joined;
  }
  return parts[0];
}

/// log 2 in two parts: the first has trailing zeros, so that its product with an exponent is exact without a fused
/// multiply-add too.
constexpr double kLn2High = 0.693359375, kLn2Low = -2.12194440054690583e-4, kLog2E = 1.4426950408889634;

/// Adding this rounds to an integer and leaves the integer in the low bits.
constexpr double kRound = 12582912;
constexpr int32_t kRoundBits = 0x4B400000;

/// Minimax fits on [-log(2) / 2, log(2) / 2]: (exp(r) - 1 - r) / r^2 such that exp(r) is within 2^-28.2 of itself, and
/// such that exp(r) - 1 is within 2^-26.1 of itself.
constexpr double kExp[] = {0.4999999345, 0.1666652069, 0.04166838736, 0.008368709822, 0.001381461314};
constexpr double kExpMinusOne[] = {0.4999999816, 0.1666654367, 0.04166719963, 0.00836651394, 0.00138825236};

/// Minimax fit of -log(erfc(x)) / x on [0, 3.92] such that erf(x) is within 2^-27.9 of itself.
constexpr double kErf[] = {1.128379172,    0.636619382,      0.1027778304,    -0.01915306361, -0.0001603965613,
                           0.001667027875, -0.0006328370214, 0.0001176412966, -9.256265145e-6};

/// An erf that is added to one is one from kErfEnd on. Below, a fit of erf(x) / x in powers of x^2 - kErfCentre, the
/// middle of the range: x p is within 5e-8 of erf(x), and near one at the end. The first four coefficients were rounded
/// to f32 one by one, each followed by a fit of the others: least squares with weights that grow where the error is
/// large (Lawson). One degree less has four times the error. Of the ends that were tried, 3.776 leaves the least error
/// in f32 where x p rounds to one at the end and nowhere to more.
constexpr double kErfEnd = 3.776, kErfCentre = 7.12908792;
constexpr double kErfBesideOne[] = {0.374467224,     -0.0261999294,   0.00272457581,   -0.000307889364, 3.51533672e-05,
                                    -3.91428739e-06, 4.14114737e-07,  -4.08447995e-08, 3.88450827e-09,  -3.66803449e-10,
                                    2.77714848e-11,  -1.34532576e-12, 1.30543823e-13,  -1.97512142e-14, 1.03753765e-15};

// x = n log 2 + r with |r| <= log(2) / 2, exp(x) = 2^n (1 + r + r^2 p(r)).
Value LaneMath::exp(Value x, bool neverAbove) {
  // Beyond these bounds the result is zero or infinite, and n would not fit in an exponent.
  Value bounded = atLeast(x, -104);
  if (!neverAbove)
    bounded = atMost(bounded, 89);
  // Twice the bias of f32's exponents: each of the two halves of n below gets one.
  constexpr int32_t kBias = 254;
  double round = hasScale() ? kRound : kRound + kBias;
  Value shifted = add(mul(bounded, constant(kLog2E)), constant(round));
  Value n = arith::SubFOp::create(b, shifted, constant(round));
  Value r = sub(sub(bounded, mul(n, constant(kLn2High))), mul(n, constant(kLn2Low)));
  Value power = polynomial(r, {1, 1, kExp[0], kExp[1], kExp[2], kExp[3], kExp[4]});
  if (hasScale())
    return scale(power, n);
  // The power is scaled in two steps, of which only the last one may round: n may lie outside of the exponents of
  // normal numbers, and the result may be subnormal. The bits above an exponent's are shifted out.
  Value bits = toBits(shifted), half = shiftRight(bits, 1);
  return mul(mul(power, fromBits(shiftLeft(half, 23))), fromBits(shiftLeft(subInt(bits, half), 23)));
}

// -x = n log 2 + r, with 2^n subtracted from one exactly: 1 - exp(-x) = (1 - 2^n) - 2^n (exp(r) - 1).
Value LaneMath::oneMinusExp(Value x) {
  Value shifted = add(mul(x, constant(kLog2E)), constant(kRound));
  Value n = arith::SubFOp::create(b, shifted, constant(kRound));
  Value r = add(mul(n, constant(kLn2Low)), sub(mul(n, constant(kLn2High)), x));
  Value minusOne = add(mul(mul(r, r), polynomial(r, kExpMinusOne)), r);
  Value power = fromBits(shiftLeft(subInt(constantInt(kRoundBits + 127), toBits(shifted)), 23));
  return sub(arith::SubFOp::create(b, constant(1), power), mul(power, minusOne));
}

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f): log(1 + f) = 2 artanh(s)
// = f - f^2/2 + s (f^2/2 + R), R = 2 s^2/3 + 2 s^4/5 + ...
Value LaneMath::log(Value x) {
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

// tanh(x) = (1 - e) / (1 + e) with e = exp(-2 |x|), and 1 beyond 9.02.
Value LaneMath::tanh(Value x) {
  Value magnitude = atMost(abs(x), 9.02);
  Value numerator = oneMinusExp(add(magnitude, magnitude));
  return copySign(div(numerator, arith::SubFOp::create(b, constant(2), numerator)), x);
}

// erf(x) = 1 - exp(-x p(x)), and 1 beyond 3.92.
Value LaneMath::erf(Value x) {
  Value magnitude = atMost(abs(x), 3.92);
  // The constant term is the whole of the error near zero: its largest part is exact and added last.
  constexpr double kFirst = 1.125;
  SmallVector<double> rest(std::begin(kErf), std::end(kErf));
  rest[0] -= kFirst;
  Value small = mul(magnitude, polynomial(magnitude, rest));
  return copySign(oneMinusExp(add(mul(magnitude, constant(kFirst)), small)), x);
}

// erf(x) = x p(x^2 - c): no exponential, and no absolute values because x p is odd.
Value LaneMath::erfBesideOne(Value x) {
  // Twice as many roundings would take gelu's error beyond its bound.
  if (!hasFma())
    return erf(x);
  Value bounded = atMost(atLeast(x, -kErfEnd), kErfEnd);
  Value square = sub(mul(bounded, bounded), constant(kErfCentre));
  // Rounded before one is added to it, so that it is never beyond one.
  return arith::MulFOp::create(b, bounded, polynomial(square, kErfBesideOne));
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

Value codegen::expandMath(ImplicitLocOpBuilder &b, const TargetCpu &cpu, Operation *op, ValueRange operands) {
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
    LaneMath lanes(b, cpu, type);
    Value result =
        llvm::TypeSwitch<Operation *, Value>(op)
            .Case([&](math::ExpOp) { return lanes.exp(operands[0], op->hasAttr(graph::kNeverAboveZero)); })
            .Case([&](math::LogOp) { return lanes.log(operands[0]); })
            .Case([&](math::TanhOp) { return lanes.tanh(operands[0]); })
            .Case([&](math::ErfOp) {
              return op->hasAttr(graph::kBesideOne) ? lanes.erfBesideOne(operands[0]) : lanes.erf(operands[0]);
            })
            .Default([](Operation *) { return Value(); });
    if (result)
      return result;
  }
  StringRef name = libraryName(op);
  return name.empty() ? Value() : callPerElement(b, name, operands);
}
