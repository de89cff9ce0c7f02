//===- KernelDeclarations.cpp - One plan.kernel per distinct kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/KernelDeclarations.h"
#include "kernels/registry/registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Fusion/EpilogueBody.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bowline;

static std::string printed(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

static kernels::DType toDType(Type type) {
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

/// What the registry knows of a kernel: its bytes of scratch and its in-place pairs.
static kernels::Signature makeSignature(StringRef name, DictionaryAttr config, ArrayRef<plan::ArgumentAttr> arguments,
                                        int64_t threads, bool hasEpilogue) {
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
    spec.dtype = toDType(argument.getType().getElementType());
    spec.shape = argument.getType().getShape().vec();
    signature.arguments.push_back(std::move(spec));
  }
  return signature;
}

KernelDeclarations::KernelDeclarations(ModuleOp module, int64_t threads)
    : module(module), threads(threads), builder(module.getContext()) {
  auto functions = module.getOps<graph::FuncOp>();
  if (functions.empty())
    builder.setInsertionPointToEnd(module.getBody());
  else
    builder.setInsertionPoint(*functions.begin());
}

plan::KernelOp KernelDeclarations::declare(StringRef baseName, Location loc) {
  std::string name = (baseName + "." + Twine(nameCounts[baseName]++)).str();
  OperationState state(loc, plan::KernelOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(name));
  return cast<plan::KernelOp>(builder.create(state));
}

static double totalBytes(ArrayRef<plan::ArgumentAttr> arguments) {
  double bytes = 0;
  for (plan::ArgumentAttr argument : arguments)
    bytes += static_cast<double>(plan::byteCount(argument.getType()));
  return bytes;
}

FailureOr<plan::KernelOp> KernelDeclarations::registered(Operation *user, StringRef name, DictionaryAttr config,
                                                         ArrayRef<plan::ArgumentAttr> arguments, double flops) {
  SmallVector<Attribute> argumentAttrs(arguments.begin(), arguments.end());
  std::string content = name.str() + printed(config) + printed(builder.getArrayAttr(argumentAttrs));
  if (plan::KernelOp known = byContent.lookup(content))
    return known;

  plan::KernelOp kernel = declare(name, builder.getUnknownLoc());
  if (failed(describe(kernel, user, name, config, arguments, flops)))
    return failure();
  return byContent[content] = kernel;
}

LogicalResult KernelDeclarations::describe(plan::KernelOp kernel, Operation *user, StringRef name,
                                           DictionaryAttr config, ArrayRef<plan::ArgumentAttr> arguments,
                                           double flops) {
  auto definition = kernels::FindKernel(std::string_view(name.data(), name.size()));
  if (!definition.ok())
    return user->emitOpError() << std::string(definition.status().message());
  bool hasEpilogue = kernel.getBody().has_value();
  auto instance = kernels::CreateKernel(makeSignature(name, config, arguments, threads, hasEpilogue));
  if (!instance.ok())
    return user->emitOpError("cannot run as kernel '") << name << "': " << std::string(instance.status().message());

  SmallVector<Attribute> argumentAttrs(arguments.begin(), arguments.end());
  if (size_t scratch = (*instance)->ScratchBytes()) {
    auto type = RankedTensorType::get({static_cast<int64_t>(scratch)}, builder.getIntegerType(8, /*isSigned=*/false));
    argumentAttrs.push_back(plan::ArgumentAttr::get(builder.getContext(), plan::Access::Write, type));
  }
  SmallVector<int64_t> inPlace;
  for (auto [output, input] : (*definition)->in_place)
    inPlace.append({output, input});
  kernel.setRegistered(name);
  if (!config.empty())
    kernel.setConfigAttr(config);
  kernel.setArgumentsAttr(builder.getArrayAttr(argumentAttrs));
  kernel.setInPlace(inPlace);
  kernel.setFlops(APFloat(flops));
  kernel.setBytesMoved(APFloat(totalBytes(arguments)));
  return success();
}

static double flopsOf(graph::FusionOp fusion) {
  double flops = 0;
  for (Operation &op : fusion.getBody().front())
    if (auto cost = dyn_cast<graph::CostModel>(op))
      flops += cost.flops();
  return flops;
}

std::string KernelDeclarations::contentOf(graph::FusionOp fusion) {
  std::string content;
  llvm::raw_string_ostream stream(content);
  stream << fusion->getOperandTypes() << fusion->getResultTypes();
  for (Operation &op : fusion.getBody().front())
    op.print(stream, OpPrintingFlags().useLocalScope().printGenericOpForm());
  return content;
}

FailureOr<plan::KernelOp> KernelDeclarations::withEpilogue(graph::FusionOp fusion, StringRef name,
                                                           DictionaryAttr config) {
  std::string content = name.str() + printed(config) + contentOf(fusion);
  if (plan::KernelOp known = byContent.lookup(content))
    return known;

  plan::KernelOp kernel = declare(name, builder.getUnknownLoc());
  func::FuncOp body = buildEpilogueBody(builder, (kernel.getName() + ".epilogue").str(), fusion);
  kernel.setBody(body.getName());
  SmallVector<plan::ArgumentAttr> arguments;
  auto add = [&](plan::Access access, Type type) {
    arguments.push_back(plan::ArgumentAttr::get(builder.getContext(), access, type));
  };
  for (Type type : fusion.getInputs().take_front(2).getTypes())
    add(plan::Access::Read, type);
  for (Type type : llvm::drop_begin(body.getArgumentTypes()))
    add(plan::Access::Read, type);
  for (Type type : body.getResultTypes())
    add(plan::Access::Write, type);
  if (failed(describe(kernel, fusion, name, config, arguments, flopsOf(fusion))))
    return failure();
  return byContent[content] = kernel;
}

/// Names of the first few distinct operations: "mulf_addf_rsqrt".
static std::string nameOf(graph::FusionOp fusion) {
  llvm::SetVector<StringRef> names;
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (!isa<graph::BroadcastOp>(op) && !op.hasTrait<OpTrait::ConstantLike>())
      names.insert(op.getName().stripDialect());
  if (names.empty())
    return "broadcast";
  return llvm::join(names.getArrayRef().take_front(4), "_");
}

plan::KernelOp KernelDeclarations::generated(graph::FusionOp fusion) {
  std::string content = contentOf(fusion);
  if (plan::KernelOp known = byContent.lookup(content))
    return known;

  SmallVector<plan::ArgumentAttr> arguments;
  for (Type type : fusion.getInputs().getTypes())
    arguments.push_back(plan::ArgumentAttr::get(builder.getContext(), plan::Access::Read, type));
  for (Type type : fusion.getOutputs().getTypes())
    arguments.push_back(plan::ArgumentAttr::get(builder.getContext(), plan::Access::Write, type));
  plan::KernelOp kernel = declare(nameOf(fusion), builder.getUnknownLoc());
  kernel.setArgumentsAttr(builder.getArrayAttr(SmallVector<Attribute>(arguments.begin(), arguments.end())));
  kernel.setFlops(APFloat(flopsOf(fusion)));
  kernel.setBytesMoved(APFloat(totalBytes(arguments)));

  auto function =
      func::FuncOp::create(builder, builder.getUnknownLoc(), (kernel.getName() + ".body").str(),
                           builder.getFunctionType(fusion.getInputs().getTypes(), fusion.getOutputs().getTypes()));
  kernel.setBody(function.getName());
  IRMapping mapping;
  fusion.getBody().cloneInto(&function.getBody(), mapping);
  Operation *yield = function.getBody().front().getTerminator();
  OpBuilder atYield(yield);
  func::ReturnOp::create(atYield, yield->getLoc(), yield->getOperands());
  yield->erase();
  return byContent[content] = kernel;
}
