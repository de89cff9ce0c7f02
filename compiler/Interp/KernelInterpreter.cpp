//===- KernelInterpreter.cpp - Reference execution of kernels
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/KernelInterpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using Tensors = KernelInterpreter::Tensors;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

FailureOr<Tensors> bowline::interpretOperation(Operation *op, ArrayRef<HostTensor> operands,
                                               const Arithmetic &arithmetic) {
  if (auto fusion = dyn_cast<FusionOp>(op))
    return interpretBlock(fusion.getBody().front(), operands, arithmetic);
  if (!isa<Interpretable>(op))
    return op->emitOpError("has no reference semantics: it does not implement the Interpretable interface");
  Tensors results;
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return op->emitOpError("has no reference semantics for a result of type ") << type;
    results.push_back(HostTensor(tensor.getShape().vec()));
  }
  if (failed(arithmetic.interpret(op, operands, results)))
    return failure();
  return results;
}

FailureOr<Tensors> bowline::interpretBlock(Block &body, ArrayRef<HostTensor> arguments, const Arithmetic &arithmetic) {
  DenseMap<Value, HostTensor> environment;
  for (auto [parameter, argument] : llvm::zip_equal(body.getArguments(), arguments))
    environment[parameter] = argument;
  for (Operation &op : body.without_terminator()) {
    Tensors operands;
    for (Value operand : op.getOperands())
      operands.push_back(environment.at(operand));
    FailureOr<Tensors> results = interpretOperation(&op, operands, arithmetic);
    if (failed(results))
      return failure();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
      environment[value] = std::move(tensor);
  }
  Tensors results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(environment.at(value));
  return results;
}

//===----------------------------------------------------------------------===//
// Registered kernels
//===----------------------------------------------------------------------===//

/// Types of the arguments that are read, or of those that are written, without workspace.
static SmallVector<Type> argumentTypes(plan::KernelOp kernel, plan::Access access) {
  SmallVector<Type> types;
  unsigned count = kernel.getNumArguments() - (kernel.hasScratch() ? 1 : 0);
  for (unsigned index = 0; index < count; ++index)
    if (plan::ArgumentAttr argument = kernel.getArgument(index); argument.getAccess() == access)
      types.push_back(argument.getType());
  return types;
}

static int64_t integer(plan::KernelOp kernel, StringRef name) {
  DictionaryAttr config = kernel.getConfigAttr();
  auto value = config ? config.getAs<IntegerAttr>(name) : IntegerAttr();
  return value ? value.getInt() : 0;
}

static ArrayRef<int64_t> integers(plan::KernelOp kernel, StringRef name) {
  DictionaryAttr config = kernel.getConfigAttr();
  auto value = config ? config.getAs<DenseI64ArrayAttr>(name) : DenseI64ArrayAttr();
  return value ? value.asArrayRef() : ArrayRef<int64_t>();
}

static FloatAttr real(plan::KernelOp kernel, StringRef name) {
  DictionaryAttr config = kernel.getConfigAttr();
  auto value = config ? config.getAs<FloatAttr>(name) : FloatAttr();
  return value ? value : Builder(kernel.getContext()).getF64FloatAttr(0);
}

static Attribute splat(plan::KernelOp kernel, RankedTensorType type) {
  double value = real(kernel, "value").getValueAsDouble();
  Type element = type.getElementType();
  if (isa<FloatType>(element)) {
    APFloat number(value);
    bool loses = false;
    number.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return DenseElementsAttr::get(type, number);
  }
  return DenseElementsAttr::get(type, APInt(element.getIntOrFloatBitWidth(), static_cast<int64_t>(value), true));
}

/// Writes the attributes that select-kernels reads. False for a kernel that is not selected for one operation.
static bool describe(plan::KernelOp kernel, TypeRange results, OperationState &state) {
  Builder b(kernel.getContext());
  StringRef name = *kernel.getRegistered();
  auto is = [&](StringRef operation) {
    state.name = OperationName(operation, kernel.getContext());
    return true;
  };
  if (name == "fill") {
    state.addAttribute("value", cast<TypedAttr>(splat(kernel, cast<RankedTensorType>(results.front()))));
    return is(arith::ConstantOp::getOperationName());
  }
  if (name == "gather_rows")
    return is(GatherOp::getOperationName());
  if (name == "scatter_add_rows")
    return is(ScatterAddOp::getOperationName());
  if (name == "rope_angles") {
    state.addAttribute("theta", real(kernel, "theta"));
    return is(RopeAnglesOp::getOperationName());
  }
  if (name == "attention_forward" || name == "attention_backward") {
    state.addAttribute("scale", real(kernel, "scale"));
    if (integer(kernel, "causal"))
      state.addAttribute("causal", b.getUnitAttr());
    return is(name == "attention_forward" ? AttentionOp::getOperationName() : AttentionGradOp::getOperationName());
  }
  if (name == "random_normal" && real(kernel, "mean").getValueAsDouble() == 0 &&
      llvm::all_of(integers(kernel, "offsets"), [](int64_t offset) { return offset == 0; })) {
    state.addAttribute("stddev", real(kernel, "stddev"));
    state.addAttribute("seed", b.getI64IntegerAttr(integer(kernel, "seed")));
    state.addAttribute("stream", b.getI64IntegerAttr(integer(kernel, "key")));
    state.addAttribute("cut_dims", b.getDenseI64ArrayAttr(integers(kernel, "cut_dims")));
    state.addAttribute("whole", b.getDenseI64ArrayAttr(integers(kernel, "global_shape")));
    return is(RandomOp::getOperationName());
  }
  return false;
}

FailureOr<Block *> KernelInterpreter::operationOf(Operation *user, plan::KernelOp kernel) {
  OwningOpRef<func::FuncOp> &function = operations[kernel];
  if (function)
    return &function->getBody().front();
  SmallVector<Type> operands = argumentTypes(kernel, plan::Access::Read),
                    results = argumentTypes(kernel, plan::Access::Write);
  OperationState state(kernel.getLoc(), GatherOp::getOperationName());
  if (!describe(kernel, results, state))
    return user->emitOpError("runs kernel @") << kernel.getName() << ", and '" << *kernel.getRegistered()
                                              << "' with this configuration has no meaning here";
  OpBuilder builder(kernel.getContext());
  function = func::FuncOp::create(kernel.getLoc(), kernel.getName(), builder.getFunctionType(operands, results));
  Block *body = function->addEntryBlock();
  builder.setInsertionPointToStart(body);
  state.addOperands(body->getArguments());
  state.addTypes(results);
  Operation *op = builder.create(state);
  func::ReturnOp::create(builder, kernel.getLoc(), op->getResults());
  return body;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// A matrix [rows, columns] for each of `batch`, from memory with these strides.
static HostTensor strided(const HostTensor &memory, std::vector<int64_t> shape, ArrayRef<int64_t> strides) {
  HostTensor tensor(std::move(shape));
  size_t next = 0;
  forEachIndex(tensor.shape, [&](const std::vector<int64_t> &index) {
    tensor.data[next++] = memory.data[offsetOf(index, strides.vec())];
  });
  return tensor;
}

FailureOr<Tensors> KernelInterpreter::product(Operation *user, plan::KernelOp kernel, ArrayRef<HostTensor> operands) {
  if (integer(kernel, "accumulate"))
    return user->emitOpError("runs kernel @")
           << kernel.getName() << ", which adds to its result; that has no meaning here";
  int64_t batch = integer(kernel, "batch"), m = integer(kernel, "m"), n = integer(kernel, "n"),
          k = integer(kernel, "k");
  int64_t rowMajor[] = {0, n, 1};
  HostTensor a = strided(operands[0], {batch, m, k}, integers(kernel, "a_strides"));
  HostTensor b = strided(operands[1], {batch, k, n},
                         integer(kernel, "b_packed") ? ArrayRef<int64_t>(rowMajor) : integers(kernel, "b_strides"));
  OwningOpRef<func::FuncOp> &function = operations[kernel];
  if (!function) {
    Type element = kernel.getArgument(0).getType().getElementType();
    // An epilogue gets the sum as it is; else it is rounded to the type of the result.
    Type sum =
        kernel.hasEpilogue() ? Float32Type::get(kernel.getContext()) : kernel.getArgument(2).getType().getElementType();
    OpBuilder builder(kernel.getContext());
    SmallVector<Type> types{RankedTensorType::get(a.shape, element), RankedTensorType::get(b.shape, element)};
    Type result = RankedTensorType::get({batch, m, n}, sum);
    function = func::FuncOp::create(kernel.getLoc(), kernel.getName(), builder.getFunctionType(types, result));
    Block *body = function->addEntryBlock();
    builder.setInsertionPointToStart(body);
    auto dot =
        DotGeneralOp::create(builder, kernel.getLoc(), body->getArgument(0), body->getArgument(1), {0}, {0}, {2}, {1});
    dot.getResult().setType(cast<RankedTensorType>(result));
    func::ReturnOp::create(builder, kernel.getLoc(), dot->getResults());
  }
  FailureOr<Tensors> product = interpretBlock(function->getBody().front(), {a, b}, *arithmetic);
  if (failed(product))
    return failure();
  if (kernel.hasEpilogue()) {
    product->front().shape = {m, n};
    return product;
  }
  HostTensor c(kernel.getArgument(2).getType().getShape().vec());
  std::vector<int64_t> strides = integers(kernel, "c_strides").vec();
  size_t next = 0;
  forEachIndex(product->front().shape, [&](const std::vector<int64_t> &index) {
    c.data[offsetOf(index, strides)] = product->front().data[next++];
  });
  return Tensors{std::move(c)};
}

/// The matrix, row-major, and zeros behind it.
static HostTensor packed(plan::KernelOp kernel, const HostTensor &matrix) {
  HostTensor result = strided(matrix, {1, integer(kernel, "k"), integer(kernel, "n")}, integers(kernel, "b_strides"));
  RankedTensorType type = kernel.getArgument(1).getType();
  result.data.resize(type.getNumElements());
  result.shape = type.getShape().vec();
  return result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static FailureOr<Tensors> runBody(func::FuncOp body, Tensors operands, const Arithmetic &arithmetic) {
  for (auto [operand, type] : llvm::zip_equal(operands, body.getArgumentTypes()))
    operand.shape = cast<RankedTensorType>(type).getShape().vec();
  return interpretBlock(body.getBody().front(), operands, arithmetic);
}

FailureOr<Tensors> KernelInterpreter::run(Operation *user, plan::KernelOp kernel, func::FuncOp body,
                                          ArrayRef<HostTensor> operands) {
  Tensors own(operands);
  for (auto [operand, type] : llvm::zip_equal(own, argumentTypes(kernel, plan::Access::Read)))
    operand.shape = cast<RankedTensorType>(type).getShape().vec();
  if (!body && (!kernel.getRegistered() || kernel.hasEpilogue()))
    return user->emitOpError("runs kernel @") << kernel.getName() << ", of which only machine code is there";
  std::optional<StringRef> name = kernel.getRegistered();
  if (!name)
    return runBody(body, std::move(own), *arithmetic);
  if (name == "pack_matrix")
    return Tensors{packed(kernel, own.front())};
  if (name == "matmul") {
    FailureOr<Tensors> result = product(user, kernel, own);
    if (failed(result) || !kernel.hasEpilogue())
      return result;
    result->append(std::next(own.begin(), 2), own.end());
    return runBody(body, std::move(*result), *arithmetic);
  }
  FailureOr<Block *> operation = operationOf(user, kernel);
  if (failed(operation))
    return failure();
  return interpretBlock(**operation, own, *arithmetic);
}
