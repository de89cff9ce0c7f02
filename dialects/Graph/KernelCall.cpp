//===- KernelCall.cpp - Calls of hand-written kernels, as operations see them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOpInterfaces.h"

using namespace mlir;
using namespace bowline::graph;

KernelConfig &KernelConfig::integer(StringRef name, int64_t value) {
  attributes.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
  return *this;
}

KernelConfig &KernelConfig::integers(StringRef name, ArrayRef<int64_t> values) {
  attributes.push_back(builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values)));
  return *this;
}

KernelConfig &KernelConfig::real(StringRef name, double value) {
  attributes.push_back(builder.getNamedAttr(name, builder.getF64FloatAttr(value)));
  return *this;
}

KernelConfig &KernelConfig::text(StringRef name, StringRef value) {
  attributes.push_back(builder.getNamedAttr(name, builder.getStringAttr(value)));
  return *this;
}

DictionaryAttr KernelConfig::get() const { return DictionaryAttr::get(builder.getContext(), attributes); }

int64_t KernelUse::integer(StringRef name) const {
  auto value = config ? config.getAs<IntegerAttr>(name) : IntegerAttr();
  return value ? value.getInt() : 0;
}

ArrayRef<int64_t> KernelUse::integers(StringRef name) const {
  auto value = config ? config.getAs<DenseI64ArrayAttr>(name) : DenseI64ArrayAttr();
  return value ? value.asArrayRef() : ArrayRef<int64_t>();
}

APFloat KernelUse::real(StringRef name) const {
  auto value = config ? config.getAs<FloatAttr>(name) : FloatAttr();
  return APFloat(value ? value.getValueAsDouble() : 0.0);
}

StringRef KernelUse::text(StringRef name) const {
  auto value = config ? config.getAs<StringAttr>(name) : StringAttr();
  return value ? value.getValue() : StringRef();
}

std::optional<RegisteredOperationName> bowline::graph::operationOfKernel(MLIRContext *context, StringRef kernel) {
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (auto *model = name.getInterface<KernelModel>(); model && model->kernelName() == kernel)
      return name;
  return std::nullopt;
}
