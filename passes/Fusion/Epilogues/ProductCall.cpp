//===- ProductCall.cpp - A product with the epilogue of a library, as a kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Epilogues/ProductCall.h"
#include "kernels/registry/product_epilogue.h"
#include "passes/Analysis/KernelSignature.h"

using namespace mlir;
using namespace bowline;

ProductCall bowline::productCallOf(graph::KernelModel contraction, StringRef epilogue, TypeRange operands,
                                   TypeRange results) {
  MLIRContext *context = contraction->getContext();
  NamedAttrList config(contraction.kernelConfig(/*hasEpilogue=*/true));
  config.set(StringRef(kernels::kEpilogue), StringAttr::get(context, epilogue));
  ProductCall call{contraction.kernelName(), config.getDictionary(context), {}};
  for (Type type : operands)
    call.arguments.push_back(plan::ArgumentAttr::get(context, plan::Access::Read, type));
  for (Type type : results)
    call.arguments.push_back(plan::ArgumentAttr::get(context, plan::Access::Write, type));
  return call;
}

ProductCall bowline::productCallOf(graph::FusionOp fusion) {
  return productCallOf(cast<graph::KernelModel>(fusion.getContraction()), *fusion.getEpilogue(),
                       fusion.getInputs().getTypes(), fusion.getOutputs().getTypes());
}

bool ProductCall::isComputedBy(const ModuleTarget &target) const {
  auto epilogue = config.getAs<StringAttr>(StringRef(kernels::kEpilogue));
  if (!llvm::is_contained(target->library_epilogues, std::string_view(epilogue.getValue())))
    return false;
  return target.needsOf(kernelSignature(kernel, config, arguments, target.threads, /*hasEpilogue=*/false)).ok();
}
