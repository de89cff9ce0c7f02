//===- PlanTables.cpp - Tables that the roles of a plan share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/PlanTables.h"
#include "compiler/Emit/PlanTypes.h"
#include "dialects/Plan/Reason.h"

#include <algorithm>

using namespace mlir;
using namespace bowline;

PlanTables::PlanTables(fbs::PlanT &plan) : plan(plan) { source("", ""); }

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

void PlanTables::addMesh(dist::MeshOp mesh) {
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsRange<StringAttr>(), mesh.getAxisSizes())) {
    auto axis = std::make_unique<fbs::AxisT>();
    axis->name = name.str();
    axis->size = size;
    axes[name] = plan.mesh.size();
    plan.mesh.push_back(std::move(axis));
  }
}

std::optional<uint8_t> PlanTables::findAxis(StringAttr name) const {
  auto known = axes.find(name);
  return known == axes.end() ? std::nullopt : std::optional<uint8_t>(known->second);
}

LogicalResult PlanTables::findAxes(Operation *op, ArrayAttr names, std::vector<uint8_t> &found) const {
  for (auto name : names.getAsRange<StringAttr>()) {
    std::optional<uint8_t> axis = findAxis(name);
    if (!axis)
      return op->emitOpError("names the axis ") << name << ", which the module's dist.mesh does not have";
    found.push_back(*axis);
  }
  return success();
}

LogicalResult PlanTables::addCommunicator(plan::CommunicatorOp op) {
  if (communicators.contains(op.getSymNameAttr()))
    return success();
  auto communicator = std::make_unique<fbs::CommunicatorT>();
  communicator->name = op.getSymName().str();
  if (failed(findAxes(op, op.getAxes(), communicator->axes)))
    return failure();
  communicators[op.getSymNameAttr()] = plan.communicators.size();
  plan.communicators.push_back(std::move(communicator));
  return success();
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

uint32_t PlanTables::source(const std::string &location, StringRef pass, StringRef reason) {
  auto [it, inserted] = sources.insert({{location, pass.str(), reason.str()}, static_cast<uint32_t>(sources.size())});
  if (inserted) {
    auto source = std::make_unique<fbs::SourceT>();
    source->location = location;
    source->pass = pass.str();
    source->reason = reason.str();
    plan.sources.push_back(std::move(source));
  }
  return it->second;
}

uint32_t PlanTables::source(Operation *op, StringRef pass) {
  return source(describeLocation(op->getLoc()), pass, plan::reasonOf(op));
}

//===----------------------------------------------------------------------===//
// Kernels and their code
//===----------------------------------------------------------------------===//

uint32_t PlanTables::addKernel(std::unique_ptr<fbs::KernelT> kernel, uint32_t firstOfRole) {
  flatbuffers::FlatBufferBuilder packed;
  packed.Finish(fbs::Kernel::Pack(packed, kernel.get()));
  std::string bytes(reinterpret_cast<const char *>(packed.GetBufferPointer()), packed.GetSize());
  uint32_t index = plan.kernels.size();
  auto [known, inserted] = kernels.emplace(std::move(bytes), index);
  if (!inserted && known->second < firstOfRole)
    return known->second;
  plan.kernels.push_back(std::move(kernel));
  return index;
}

uint32_t PlanTables::addImage(std::unique_ptr<fbs::ImageT> image) {
  auto equal = [](const fbs::ValueDigest &a, const fbs::ValueDigest &b) {
    return a.low() == b.low() && a.high() == b.high();
  };
  auto same = [&](const std::unique_ptr<fbs::CodeT> &a, const std::unique_ptr<fbs::CodeT> &b) {
    return a->format == b->format && a->target == b->target && a->data == b->data &&
           std::equal(a->contracts.begin(), a->contracts.end(), b->contracts.begin(), b->contracts.end(), equal);
  };
  auto known = llvm::find_if(plan.images, [&](const std::unique_ptr<fbs::ImageT> &other) {
    return std::equal(image->codes.begin(), image->codes.end(), other->codes.begin(), other->codes.end(), same);
  });
  auto index = static_cast<uint32_t>(known - plan.images.begin());
  if (known == plan.images.end())
    plan.images.push_back(std::move(image));
  return index;
}
