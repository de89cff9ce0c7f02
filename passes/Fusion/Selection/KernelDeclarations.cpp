//===- KernelDeclarations.cpp - One plan.kernel per distinct kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Selection/KernelDeclarations.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/KernelSignature.h"
#include "passes/Fusion/Epilogues/EpilogueBody.h"
#include "passes/Fusion/Epilogues/ProductCall.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bowline;

static std::string printed(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

KernelDeclarations::KernelDeclarations(ModuleOp module, ModuleTarget target, int64_t threads)
    : module(module), target(std::move(target)), threads(threads), builder(module.getContext()) {
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

FailureOr<plan::KernelOp> KernelDeclarations::registered(Operation *user, graph::KernelModel model,
                                                         DictionaryAttr config,
                                                         ArrayRef<plan::ArgumentAttr> arguments) {
  std::string name = model.kernelName().str();
  SmallVector<Attribute> argumentAttrs(arguments.begin(), arguments.end());
  std::string content = name + printed(config) + printed(builder.getArrayAttr(argumentAttrs));
  if (plan::KernelOp known = byContent.lookup(content))
    return known;

  plan::KernelOp kernel = declare(name, builder.getUnknownLoc());
  auto costs = dyn_cast<graph::CostModel>(model.getOperation());
  Cost cost = costs ? Cost{costs.flops(), costs.bytes()} : Cost{0, totalBytes(arguments)};
  if (failed(describe(kernel, user, name, config, arguments, cost)))
    return failure();
  return byContent[content] = kernel;
}

LogicalResult KernelDeclarations::describe(plan::KernelOp kernel, Operation *user, StringRef name,
                                           DictionaryAttr config, ArrayRef<plan::ArgumentAttr> arguments,
                                           const Cost &cost) {
  bool hasEpilogue = kernel.getBody().has_value();
  auto needs = target.needsOf(kernelSignature(name, config, arguments, threads, hasEpilogue));
  if (!needs.ok())
    return user->emitOpError("cannot run as kernel '") << name << "': " << std::string(needs.status().message());

  SmallVector<Attribute> argumentAttrs(arguments.begin(), arguments.end());
  if (size_t scratch = needs->scratch_bytes) {
    auto type = RankedTensorType::get({static_cast<int64_t>(scratch)}, builder.getIntegerType(8, /*isSigned=*/false));
    argumentAttrs.push_back(plan::ArgumentAttr::get(builder.getContext(), plan::Access::Write, type));
  }
  SmallVector<int64_t> inPlace;
  for (auto [output, input] : needs->in_place)
    inPlace.append({output, input});
  kernel.setRegistered(name);
  if (!config.empty())
    kernel.setConfigAttr(config);
  kernel.setArgumentsAttr(builder.getArrayAttr(argumentAttrs));
  kernel.setInPlace(inPlace);
  kernel.setFlops(APFloat(cost.flops));
  kernel.setBytesMoved(APFloat(cost.bytes));
  return success();
}

static double flopsOfFusion(graph::FusionOp fusion) {
  double flops = 0;
  for (Operation &op : fusion.getBody().front())
    if (auto cost = dyn_cast<graph::CostModel>(op))
      flops += cost.flops();
  return flops;
}

std::string KernelDeclarations::contentOf(graph::FusionOp fusion) {
  std::string content;
  llvm::raw_string_ostream stream(content);
  stream << fusion->getOperandTypes() << fusion->getResultTypes() << fusion.getValidRowsAttr()
         << fusion.getEpilogueAttr();
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
  size_t own = fusion.getContraction()->getNumOperands();
  for (Type type : fusion.getInputs().take_front(own).getTypes())
    add(plan::Access::Read, type);
  for (Type type : llvm::drop_begin(body.getArgumentTypes()))
    add(plan::Access::Read, type);
  for (Type type : body.getResultTypes())
    add(plan::Access::Write, type);
  if (failed(describe(kernel, fusion, name, config, arguments, {flopsOfFusion(fusion), totalBytes(arguments)})))
    return failure();
  return byContent[content] = kernel;
}

FailureOr<plan::KernelOp> KernelDeclarations::withLibraryEpilogue(graph::FusionOp fusion) {
  ProductCall product = productCallOf(fusion);
  std::string content = contentOf(fusion);
  if (plan::KernelOp known = byContent.lookup(content))
    return known;
  plan::KernelOp kernel = declare(product.kernel, builder.getUnknownLoc());
  if (failed(describe(kernel, fusion, product.kernel, product.config, product.arguments,
                      {flopsOfFusion(fusion), totalBytes(product.arguments)})))
    return failure();
  return byContent[content] = kernel;
}

/// Names of the first few distinct operations: "mulf_addf_rsqrt".
static std::string nameOfOperations(graph::FusionOp fusion) {
  llvm::SetVector<StringRef> names;
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (graph::fusionRoleOf(&op) != graph::FusionRole::Repeated)
      names.insert(op.getName().stripDialect());
  if (names.empty())
    return "broadcast";
  return llvm::join(names.getArrayRef().take_front(4), "_");
}

/// Bytes that a generated kernel reads of its inputs and writes of its outputs, each once.
static double bytesOfFusion(graph::FusionOp fusion) {
  double bytes = 0;
  for (Value input : fusion.getBody().getArguments()) {
    double whole = graph::byteCount(input.getType()), read = 0;
    for (OpOperand &use : input.getUses()) {
      auto model = dyn_cast<graph::CostModel>(use.getOwner());
      read += model ? model.bytesRead(use.getOperandNumber()) : whole;
    }
    bytes += std::min(read, whole);
  }
  for (Type output : fusion.getOutputs().getTypes())
    bytes += graph::byteCount(output);
  return bytes;
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
  plan::KernelOp kernel = declare(nameOfOperations(fusion), builder.getUnknownLoc());
  kernel.setArgumentsAttr(builder.getArrayAttr(SmallVector<Attribute>(arguments.begin(), arguments.end())));
  kernel.setFlops(APFloat(flopsOfFusion(fusion)));
  kernel.setBytesMoved(APFloat(bytesOfFusion(fusion)));

  auto function =
      func::FuncOp::create(builder, builder.getUnknownLoc(), (kernel.getName() + ".body").str(),
                           builder.getFunctionType(fusion.getInputs().getTypes(), fusion.getOutputs().getTypes()));
  kernel.setBody(function.getName());
  if (auto rows = fusion.getValidRowsAttr()) {
    kernel.setValidRows(rows.asArrayRef());
  }
  IRMapping mapping;
  fusion.getBody().cloneInto(&function.getBody(), mapping);
  Operation *yield = function.getBody().front().getTerminator();
  OpBuilder atYield(yield);
  func::ReturnOp::create(atYield, yield->getLoc(), yield->getOperands());
  yield->erase();
  return byContent[content] = kernel;
}
