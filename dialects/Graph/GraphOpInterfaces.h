//===- GraphOpInterfaces.h - What operations tell algorithms
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_H
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_H

#include "dialects/Graph/FactorRule.h"
#include "dialects/Graph/HostTensor.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/Graph/GraphOpInterfaces.h.inc"

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_H
