//===- ImportKernels.cpp - From the plan's kernels and images to plan.kernel and plan.image
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/FileAttributes.h"
#include "compiler/Emit/ImportRole.h"
#include "runtime/base/sha256.h"
#include "runtime/plan/view/plan_view.h"
#include "llvm/ADT/BitVector.h"

#include <limits>

using namespace mlir;
using namespace bowline;

namespace {

class KernelImporter {
public:
  explicit KernelImporter(RoleScope &scope) : scope(scope), plan(scope.plan), builder(scope.builder) {}

  LogicalResult run() {
    BitVector kernels = kernelsOfRole();
    std::optional<uint32_t> image;
    for (unsigned index : kernels.set_bits()) {
      const fbs::KernelT &kernel = *plan.kernels[index];
      if (!hasCode(kernel))
        continue;
      if (image && *image != kernel.image)
        return emitError(builder.getUnknownLoc())
               << "kernels of one role are in images " << *image << " and " << kernel.image
               << ", which cannot be expressed in the plan dialect yet";
      image = kernel.image;
    }
    if (image && failed(importImage(*plan.images[*image])))
      return failure();
    for (unsigned index : kernels.set_bits())
      if (!scope.isCheck(index) && failed(importKernel(index)))
        return failure();
    return success();
  }

private:
  static bool hasCode(const fbs::KernelT &kernel) {
    return kernel.origin == fbs::KernelOrigin::Generated || !kernel.epilogue.empty();
  }

  /// Kernels that the role launches, alone or with others. A kernel that no role launches goes with the one before it.
  BitVector kernelsOfRole() const {
    constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();
    std::vector<uint32_t> first(plan.kernels.size(), kNobody); // role that launches it
    BitVector result(plan.kernels.size());
    for (const auto &program : plan.programs)
      for (const auto &segment : program->segments)
        for (const auto &command : segment->commands)
          if (const fbs::LaunchT *launch = command->body.AsLaunch()) {
            first[launch->kernel] = std::min<uint32_t>(first[launch->kernel], program->role);
            if (program->role == scope.role)
              result.set(launch->kernel);
          }
    uint32_t owner = 0;
    for (uint32_t i = 0; i < first.size(); ++i) {
      if (first[i] != kNobody)
        owner = first[i];
      else if (owner == scope.role)
        result.set(i);
    }
    return result;
  }

  LogicalResult importImage(const fbs::ImageT &image) {
    for (const auto &code : image.codes) {
      auto type = RankedTensorType::get({static_cast<int64_t>(code->data.size())}, builder.getI8Type());
      auto *bytes = reinterpret_cast<const char *>(code->data.data());
      auto value = DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes, code->data.size()));
      SmallVector<int64_t> contracts;
      for (const fbs::ValueDigest &contract : code->contracts)
        contracts.append({static_cast<int64_t>(contract.low()), static_cast<int64_t>(contract.high())});
      auto op = plan::ImageOp::create(
          builder, builder.getUnknownLoc(), builder.getStringAttr(code->format), cast<ElementsAttr>(value),
          code->hash ? builder.getDenseI64ArrayAttr(contracts) : DenseI64ArrayAttr(),
          code->hash ? builder.getStringAttr(ToHex({code->hash->bytes()->data(), 32})) : StringAttr());
      if (!code->target.empty())
        op->setAttr(kCodeTargetAttr, builder.getStringAttr(code->target));
    }
    return success();
  }

  LogicalResult importGeometry(const fbs::KernelT &kernel, plan::KernelOp op) {
    auto fails = [&](StringRef why) {
      return LogicalResult(emitError(builder.getUnknownLoc()) << "kernel '" << kernel.name << "' " << why);
    };
    return VisitGeometry(
        kernel, GeometryVisitor{[&](std::monostate) { return fails("does not say how it is launched"); },
                                [&](const fbs::ByRangeT &range) {
                                  op.setExtent(range.extent);
                                  return success();
                                },
                                [&](const fbs::GridT &grid) {
                                  if (grid.blocks.size() != 1 || grid.threads.size() != 1 || grid.shared_bytes != 0)
                                    return fails("is launched by a grid of several dimensions or with memory of its "
                                                 "blocks, which cannot be expressed in the plan dialect yet");
                                  SmallVector<int64_t> launched = {grid.blocks[0], grid.threads[0]};
                                  launched.append(grid.constants.begin(), grid.constants.end());
                                  op.setGrid(ArrayRef<int64_t>(launched));
                                  return success();
                                }});
  }

  LogicalResult importKernel(uint32_t index) {
    const fbs::KernelT &kernel = *plan.kernels[index];
    std::string symbol = kernel.name + "." + std::to_string(index);
    OperationState state(builder.getUnknownLoc(), plan::KernelOp::getOperationName());
    state.addAttribute("sym_name", builder.getStringAttr(symbol));
    auto op = cast<plan::KernelOp>(builder.create(state));
    if (kernel.origin == fbs::KernelOrigin::Registered) {
      op.setRegistered(kernel.name);
      SmallVector<NamedAttribute> config;
      for (const auto &attribute : kernel.attributes)
        config.push_back(importAttribute(*attribute));
      if (!config.empty())
        op.setConfigAttr(builder.getDictionaryAttr(config));
      if (!kernel.epilogue.empty())
        op.setSymbol(StringRef(kernel.epilogue));
    } else {
      op.setSymbol(kernel.name);
      if (failed(importGeometry(kernel, op)))
        return failure();
    }
    SmallVector<Attribute> arguments;
    for (const auto &argument : kernel.arguments)
      arguments.push_back(plan::ArgumentAttr::get(builder.getContext(), static_cast<plan::Access>(argument->access),
                                                  scope.tensorType(argument->dtype, argument->shape),
                                                  argument->alignment));
    op.setArgumentsAttr(builder.getArrayAttr(arguments));
    SmallVector<int64_t> pairs;
    for (const fbs::InPlace &pair : kernel.in_place)
      pairs.append({pair.output(), pair.input()});
    op.setInPlace(pairs);
    SmallVector<Attribute> dependences;
    for (const auto &dependence : kernel.dependences) {
      SmallVector<int64_t> list = {dependence->output};
      list.append(dependence->inputs.begin(), dependence->inputs.end());
      dependences.push_back(builder.getDenseI64ArrayAttr(list));
    }
    if (!dependences.empty())
      op.setDependencesAttr(builder.getArrayAttr(dependences));
    if (kernel.valid_rows) {
      SmallVector<int64_t> rows = {kernel.valid_rows->count};
      rows.append(kernel.valid_rows->arguments.begin(), kernel.valid_rows->arguments.end());
      op.setValidRows(ArrayRef<int64_t>(rows));
    }
    op.setFlops(APFloat(kernel.flops));
    op.setBytesMoved(APFloat(kernel.bytes_moved));
    scope.kernelSymbols[index] = symbol;
    return success();
  }

  NamedAttribute importAttribute(const fbs::AttributeT &attribute) {
    Attribute value;
    if (attribute.ints.size() == 1)
      value = builder.getI64IntegerAttr(attribute.ints[0]);
    else if (!attribute.ints.empty())
      value = builder.getDenseI64ArrayAttr(attribute.ints);
    else if (attribute.floats.size() == 1)
      value = builder.getF64FloatAttr(attribute.floats[0]);
    else if (!attribute.floats.empty())
      value = builder.getDenseF64ArrayAttr(attribute.floats);
    else if (!attribute.text.empty())
      value = builder.getStringAttr(attribute.text);
    else
      value = builder.getDenseI64ArrayAttr({}); // the shape of a scalar
    return builder.getNamedAttr(attribute.name, value);
  }

  RoleScope &scope;
  const fbs::PlanT &plan;
  OpBuilder &builder;
};

} // namespace

LogicalResult bowline::importKernels(RoleScope &scope) { return KernelImporter(scope).run(); }
