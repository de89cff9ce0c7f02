//===- KernelInterpreter.cpp - Reference execution of kernels
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/KernelInterpreter.h"
#include "compiler/Interp/ProductEpilogueBody.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Graph/ValidRows.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Analysis/KernelSignature.h"

#include <limits>

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using Tensors = KernelInterpreter::Tensors;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Writes `value` to the rows of `tensor` that `count` does not count.
static void fillRowsBehind(HostTensor &tensor, const HostTensor &count, double value) {
  int64_t rows = tensor.shape.front();
  auto valid = tensor.count() / rows * graph::validRows(count, rows);
  std::fill(tensor.data.begin() + valid, tensor.data.end(), value);
}

/// Rows that the kernel leaves out become NaN, as does every number that a reader computes from them. `numbers` are
/// those of the count, of operands, and of results behind the operands.
static FailureOr<Tensors> withoutRows(ArrayRef<int64_t> numbers, ArrayRef<HostTensor> operands,
                                      FailureOr<Tensors> results) {
  if (failed(results) || numbers.empty())
    return results;
  auto inputs = static_cast<int64_t>(operands.size());
  for (int64_t number : numbers.drop_front())
    if (number >= inputs)
      fillRowsBehind((*results)[number - inputs], operands[numbers.front()], std::numeric_limits<double>::quiet_NaN());
  return results;
}

/// The operands for a kernel that does not read rows behind the count, with zeros there: such a row may hold NaN, which
/// is no row number of a table either, and a row that is not read adds nothing.
static Tensors hideRows(ArrayRef<int64_t> numbers, Tensors operands) {
  auto inputs = static_cast<int64_t>(operands.size());
  if (!numbers.empty())
    for (int64_t number : numbers.drop_front())
      if (number < inputs)
        fillRowsBehind(operands[number], operands[numbers.front()], 0);
  return operands;
}

FailureOr<Tensors> bowline::interpretOperation(Operation *op, ArrayRef<HostTensor> operands,
                                               const graph::Arithmetic &arithmetic) {
  if (auto fusion = dyn_cast<FusionOp>(op)) {
    ArrayRef<int64_t> rows = fusion.getValidRows().value_or(ArrayRef<int64_t>());
    Block &body = fusion.getBody().front();
    if (!kernelThatLeavesRowsOut(fusion))
      return withoutRows(rows, operands, interpretBlock(body, operands, arithmetic));
    return withoutRows(rows, operands, interpretBlock(body, hideRows(rows, Tensors(operands)), arithmetic));
  }
  if (!isa<Interpretable>(op))
    return op->emitOpError("has no reference semantics: it does not implement the Interpretable interface");
  Tensors results;
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return op->emitOpError("has no reference semantics for a result of type ") << type;
    results.push_back(HostTensor(tensor.getShape().vec()));
  }
  if (failed(cast<Interpretable>(op).interpret(operands, results, arithmetic)))
    return failure();
  return results;
}

FailureOr<Tensors> bowline::interpretBlock(Block &body, ArrayRef<HostTensor> arguments,
                                           const graph::Arithmetic &arithmetic) {
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

/// Types of the arguments that the kernel reads, or of those that it writes, without workspace. An argument that the
/// kernel updates in place is among both.
static SmallVector<RankedTensorType> argumentTypes(plan::KernelOp kernel, plan::Access access) {
  SmallVector<RankedTensorType> types;
  unsigned count = kernel.getNumArguments() - (kernel.hasScratch() ? 1 : 0);
  for (unsigned index = 0; index < count; ++index)
    if (plan::ArgumentAttr argument = kernel.getArgument(index);
        argument.getAccess() == access || argument.getAccess() == plan::Access::ReadWrite)
      types.push_back(argument.getType());
  return types;
}

/// Returns the operation that the kernel computes, in a function of the arguments that the kernel reads.
FailureOr<Block *> KernelInterpreter::operationOf(Operation *user, plan::KernelOp kernel) {
  OwningOpRef<func::FuncOp> &function = operations[kernel];
  if (function)
    return &function->getBody().front();
  MLIRContext *context = kernel.getContext();
  KernelUse use{kernel.getConfigAttr(), argumentTypes(kernel, plan::Access::Read),
                argumentTypes(kernel, plan::Access::Write), kernel.hasEpilogue()};
  OpBuilder builder(context);
  SmallVector<Type> inputs(use.operands.begin(), use.operands.end());
  function = func::FuncOp::create(kernel.getLoc(), kernel.getName(), builder.getFunctionType(inputs, {}));
  Block *body = function->addEntryBlock();
  auto inBody = ImplicitLocOpBuilder::atBlockBegin(kernel.getLoc(), body);
  SmallVector<Value> results;
  auto name = operationOfKernel(context, *kernel.getRegistered());
  // The epilogue of a library starts, as a generated one does, from the kernel's result in f32.
  const kernels::ProductEpilogue *epilogue = libraryEpilogueOf(use.config);
  use.hasEpilogue |= epilogue != nullptr;
  LogicalResult built =
      name ? name->getInterface<KernelModel>()->buildFromKernel(inBody, use, body->getArguments(), results) : failure();
  if (succeeded(built) && epilogue) {
    Value product = results.pop_back_val();
    built = buildProductEpilogue(inBody, use, *epilogue, product, body->getArguments(), results);
  }
  if (failed(built)) {
    function = nullptr;
    return user->emitOpError("runs kernel @") << kernel.getName() << ", and '" << *kernel.getRegistered()
                                              << "' with this configuration has no meaning here";
  }
  func::ReturnOp::create(inBody, results);
  return body;
}

/// A matrix, row-major, and zeros behind it: the packed form of an operand, which is a matter of the machine and no
/// operation.
static HostTensor packed(plan::KernelOp kernel, const HostTensor &matrix) {
  KernelUse use{kernel.getConfigAttr(), {}, {}};
  RankedTensorType type = kernel.getArgument(1).getType();
  HostTensor result(type.getShape().vec());
  size_t next = 0;
  forEachIndex({1, use.integer("k"), use.integer("n")}, [&](const std::vector<int64_t> &index) {
    result.data[next++] = matrix.data[offsetOf(index, use.integers("b_strides").vec())];
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static FailureOr<Tensors> runBody(func::FuncOp body, Tensors operands, const graph::Arithmetic &arithmetic) {
  for (auto [operand, type] : llvm::zip_equal(operands, body.getArgumentTypes()))
    operand.shape = cast<RankedTensorType>(type).getShape().vec();
  return interpretBlock(body.getBody().front(), operands, arithmetic);
}

FailureOr<Tensors> KernelInterpreter::run(Operation *user, plan::KernelOp kernel, func::FuncOp body,
                                          ArrayRef<HostTensor> operands) {
  Tensors own(operands);
  for (auto [operand, type] : llvm::zip_equal(own, argumentTypes(kernel, plan::Access::Read)))
    operand.shape = type.getShape().vec();
  if (!body && (!kernel.getRegistered() || kernel.hasEpilogue()))
    return user->emitOpError("runs kernel @")
           << kernel.getName() << ", which cannot be interpreted: the plan has only its machine code";
  std::optional<StringRef> name = kernel.getRegistered();
  SmallVector<int64_t> rows = validRowsOf(kernel);
  if (!name)
    return withoutRows(rows, own, runBody(body, own, *arithmetic));
  // By name: the only kernel that no operation computes, so that there is none to build from it.
  if (name == "pack_matrix")
    return Tensors{packed(kernel, own.front())};
  FailureOr<Block *> operation = operationOf(user, kernel);
  if (failed(operation))
    return failure();
  if (!kernel.hasEpilogue())
    return withoutRows(rows, own, interpretBlock(**operation, hideRows(rows, own), *arithmetic));
  // The body takes the kernel's result, and the arguments behind the kernel's own.
  size_t ownCount = own.size() - (body.getNumArguments() - 1);
  FailureOr<Tensors> result = interpretBlock(**operation, own, *arithmetic);
  if (failed(result))
    return failure();
  result->append(std::next(own.begin(), static_cast<ptrdiff_t>(ownCount)), own.end());
  return runBody(body, std::move(*result), *arithmetic);
}
