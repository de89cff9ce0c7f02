//===- GraphAttrs.h - Attributes of the graph dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_H
#define BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_H

#include "mlir/IR/BuiltinAttributes.h"

#include "dialects/Graph/GraphEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Graph/GraphAttrs.h.inc"

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHATTRS_H
