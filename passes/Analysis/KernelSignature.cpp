//===- KernelSignature.cpp - What a target is asked about a kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/KernelSignature.h"

using namespace mlir;
using namespace bowline;

kernels::DType bowline::dtypeOf(Type type) {
  if (type.isF32())
    return kernels::DType::kF32;
  if (type.isF64())
    return kernels::DType::kF64;
  if (type.isBF16())
    return kernels::DType::kBF16;
  if (type.isF16())
    return kernels::DType::kF16;
  if (type.isInteger(64))
    return kernels::DType::kI64;
  if (type.isInteger(32))
    return kernels::DType::kI32;
  assert(type.isInteger(1) && "graph tensors have no other element type");
  return kernels::DType::kBool;
}

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
    spec.dtype = dtypeOf(argument.getType().getElementType());
    spec.shape = argument.getType().getShape().vec();
    signature.arguments.push_back(std::move(spec));
  }
  return signature;
}
