//===- EmitKernel.cpp - From plan.kernel to the plan's table of kernels
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/EmitKernel.h"
#include "compiler/Emit/PlanTypes.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace bowline;

static std::unique_ptr<fbs::AttributeT> emitAttribute(NamedAttribute named) {
  auto attribute = std::make_unique<fbs::AttributeT>();
  attribute->name = named.getName().str();
  if (auto integer = dyn_cast<IntegerAttr>(named.getValue()))
    attribute->ints = {integer.getInt()};
  else if (auto list = dyn_cast<DenseI64ArrayAttr>(named.getValue()))
    attribute->ints = list.asArrayRef().vec();
  else if (auto real = dyn_cast<FloatAttr>(named.getValue()))
    attribute->floats = {real.getValueAsDouble()};
  else if (auto reals = dyn_cast<DenseF64ArrayAttr>(named.getValue()))
    attribute->floats = reals.asArrayRef().vec();
  else
    attribute->text = cast<StringAttr>(named.getValue()).str();
  return attribute;
}

FailureOr<std::unique_ptr<fbs::KernelT>> bowline::emitKernel(plan::KernelOp op) {
  auto kernel = std::make_unique<fbs::KernelT>();
  if (op.getRegistered()) {
    kernel->origin = fbs::KernelOrigin::Registered;
    kernel->name = op.getRegistered()->str();
    if (DictionaryAttr config = op.getConfigAttr())
      for (NamedAttribute attribute : config)
        kernel->attributes.push_back(emitAttribute(attribute));
    if (op.getBody())
      return op.emitOpError("has no code yet for its epilogue; run generate-kernels first");
    kernel->epilogue = op.getSymbol().value_or("").str();
  } else if (op.getSymbol()) {
    kernel->origin = fbs::KernelOrigin::Generated;
    kernel->name = op.getSymbol()->str();
    if (auto grid = op.getGrid()) {
      fbs::GridT geometry;
      geometry.blocks = {static_cast<uint32_t>((*grid)[0])};
      geometry.threads = {static_cast<uint32_t>((*grid)[1])};
      geometry.constants.assign(grid->begin() + 2, grid->end());
      kernel->geometry.Set(std::move(geometry));
    } else {
      fbs::ByRangeT geometry;
      geometry.extent = *op.getExtent();
      kernel->geometry.Set(std::move(geometry));
    }
  } else {
    return op.emitOpError("has no code yet; run generate-kernels first");
  }
  for (auto argument : op.getArguments().getAsRange<plan::ArgumentAttr>()) {
    auto emitted = std::make_unique<fbs::ArgumentT>();
    emitted->access = static_cast<fbs::Access>(argument.getAccess());
    std::optional<fbs::DType> dtype = toDType(argument.getType().getElementType());
    if (!dtype)
      return op.emitOpError("argument element type ") << argument.getType() << " is not one of the plan's";
    emitted->dtype = *dtype;
    emitted->shape = argument.getType().getShape().vec();
    emitted->alignment = argument.getAlignment();
    kernel->arguments.push_back(std::move(emitted));
  }
  for (size_t i = 0; i < op.getInPlace().size(); i += 2)
    kernel->in_place.emplace_back(op.getInPlace()[i], op.getInPlace()[i + 1]);
  if (ArrayRef<int64_t> rows = op.getValidRows().value_or(ArrayRef<int64_t>()); !rows.empty()) {
    kernel->valid_rows = std::make_unique<fbs::ValidRowsT>();
    kernel->valid_rows->count = static_cast<uint32_t>(rows.front());
    kernel->valid_rows->arguments.assign(rows.begin() + 1, rows.end());
  }
  if (ArrayAttr dependences = op.getDependencesAttr())
    for (auto list : dependences.getAsRange<DenseI64ArrayAttr>()) {
      ArrayRef<int64_t> arguments = list.asArrayRef();
      auto dependence = std::make_unique<fbs::DependenceT>();
      dependence->output = static_cast<uint32_t>(arguments.front());
      dependence->inputs.assign(arguments.begin() + 1, arguments.end());
      kernel->dependences.push_back(std::move(dependence));
    }
  kernel->flops = op.getFlops().convertToDouble();
  kernel->bytes_moved = op.getBytesMoved().convertToDouble();
  return kernel;
}

const kernels::DataCheck *bowline::dataCheckOf(plan::KernelOp op) {
  DictionaryAttr config = op.getConfigAttr();
  if (!op.getRegistered() || (config && config.contains(StringRef(kernels::kInRange))))
    return nullptr;
  return kernels::FindDataCheck(std::string_view(*op.getRegistered()));
}

int64_t bowline::rowsOfCheck(const kernels::DataCheck &check, plan::KernelOp op) {
  kernels::Signature signature;
  for (auto argument : op.getArguments().getAsRange<plan::ArgumentAttr>())
    signature.arguments.push_back({static_cast<kernels::Access>(argument.getAccess()), kernels::DType::kI32,
                                   argument.getType().getShape().vec()});
  return kernels::RowsOfCheck(check, signature);
}

std::unique_ptr<fbs::KernelT> bowline::emitDataCheck(const kernels::DataCheck &check, const fbs::KernelT &kernel) {
  kernels::Signature checked;
  for (const auto &argument : kernel.arguments)
    checked.arguments.push_back({static_cast<kernels::Access>(argument->access),
                                 static_cast<kernels::DType>(argument->dtype), argument->shape});
  const kernels::Signature signature = kernels::SignatureOfCheck(check, checked);
  auto emitted = std::make_unique<fbs::KernelT>();
  emitted->name = signature.kernel;
  for (const kernels::Attribute &attribute : signature.attributes) {
    emitted->attributes.push_back(std::make_unique<fbs::AttributeT>());
    emitted->attributes.back()->name = attribute.name;
    emitted->attributes.back()->ints = attribute.ints;
  }
  for (const kernels::TensorSpec &spec : signature.arguments) {
    auto argument = std::make_unique<fbs::ArgumentT>();
    argument->access = static_cast<fbs::Access>(spec.access);
    argument->dtype = static_cast<fbs::DType>(spec.dtype);
    argument->shape = spec.shape;
    emitted->bytes_moved += static_cast<double>(spec.ByteCount());
    emitted->arguments.push_back(std::move(argument));
  }
  return emitted;
}
