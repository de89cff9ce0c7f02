//===- KernelSignature.cpp - The signature of a kernel, for questions to a target
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/KernelSignature.h"
#include "dialects/Program/ElementTypes.h"
#include "kernels/registry/valid_rows.h"

using namespace mlir;
using namespace bowline;

kernels::Signature bowline::kernelSignature(StringRef name, DictionaryAttr config,
                                            ArrayRef<plan::ArgumentAttr> arguments, int64_t threads, bool hasEpilogue) {
  kernels::Signature signature;
  signature.has_epilogue = hasEpilogue;
  signature.kernel = name.str();
  signature.threads = static_cast<int>(threads);
  for (NamedAttribute named : config) {
    kernels::Attribute attribute;
    attribute.name = named.getName().str();
    if (auto integer = dyn_cast<IntegerAttr>(named.getValue()))
      attribute.ints = {integer.getInt()};
    else if (auto list = dyn_cast<DenseI64ArrayAttr>(named.getValue()))
      attribute.ints = list.asArrayRef().vec();
    else if (auto text = dyn_cast<StringAttr>(named.getValue()))
      attribute.text = text.str();
    else
      attribute.floats = {cast<FloatAttr>(named.getValue()).getValueAsDouble()};
    signature.attributes.push_back(std::move(attribute));
  }
  for (plan::ArgumentAttr argument : arguments) {
    kernels::TensorSpec spec;
    spec.access = static_cast<kernels::Access>(argument.getAccess());
    // The verifier of arguments refuses other types, and every kernel refuses this value.
    spec.dtype = elementTypeOf(argument.getType().getElementType()).value_or(static_cast<ElementType>(UINT8_MAX));
    spec.shape = argument.getType().getShape().vec();
    signature.arguments.push_back(std::move(spec));
  }
  return signature;
}

Value bowline::tableOf(Operation *op, const kernels::DataCheck &check) {
  return check.rows == kernels::kResult ? Value(op->getResult(0)) : op->getOperand(check.rows);
}

SmallVector<int64_t> bowline::validRowsOf(plan::KernelOp kernel) {
  if (!kernel.getRegistered())
    return SmallVector<int64_t>(kernel.getValidRows().value_or(ArrayRef<int64_t>()));
  DictionaryAttr config = kernel.getConfigAttr();
  const kernels::ValidRows *rows = kernels::FindValidRows(
      std::string_view(*kernel.getRegistered()), config && config.contains(StringRef(kernels::kLeavesRowsOut)));
  SmallVector<int64_t> numbers;
  if (rows) {
    numbers.push_back(rows->count);
    numbers.append(rows->arguments.begin(), rows->arguments.end());
  }
  return numbers;
}
