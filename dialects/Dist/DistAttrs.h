//===- DistAttrs.h - Attributes of the dist dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_DIST_DISTATTRS_H
#define BOWLINE_DIALECTS_DIST_DISTATTRS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "dialects/Dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.h.inc"

#endif // BOWLINE_DIALECTS_DIST_DISTATTRS_H
