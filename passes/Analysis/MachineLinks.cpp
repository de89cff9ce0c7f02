//===- MachineLinks.cpp - The machine model with the links that a pass is told
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/MachineLinks.h"
#include "dialects/Dist/DistOps.h"

using namespace mlir;
using namespace bowline;

FailureOr<kernels::MachineModel> bowline::machineWithLinks(ModuleOp module, StringRef links) {
  kernels::MachineModel machine;
  SmallVector<StringRef> parts;
  links.split(parts, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::vector<std::string> texts, axes;
  for (StringRef part : parts)
    texts.push_back(part.str());
  if (dist::MeshOp mesh = dist::MeshOp::of(module))
    for (auto name : mesh.getAxisNames().getAsRange<StringAttr>())
      axes.push_back(name.str());
  absl::StatusOr<kernels::LinkTable> table = kernels::ParseLinks(texts, axes);
  if (!table.ok())
    return module.emitError() << std::string(table.status().message());
  machine.links = std::move(*table);
  return machine;
}
