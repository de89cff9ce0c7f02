//===- GraphOpInterfaces.cpp - What operations tell algorithms
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOpInterfaces.h"

#include "dialects/Graph/GraphOpInterfaces.cpp.inc"
