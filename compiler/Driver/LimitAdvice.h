//===- LimitAdvice.h - A way to meet a memory limit
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_LIMITADVICE_H
#define BOWLINE_COMPILER_DRIVER_LIMITADVICE_H

#include "compiler/Driver/CompileOptions.h"

namespace bowline {

/// The end of a message that \p result, the plan of \p options, is larger than `options.memoryLimit`: "; use ..." or ";
/// parameters ... take ...". Of training, choices are compiled before they are named, each without code. Empty where
/// nothing is known that helps.
std::string adviseOnLimit(const CompileOptions &options, const CompileResult &result);

/// "1.1 MiB, more than --memory-limit 1MiB", and by how many bytes where both round to the same text. \p limit is the
/// user's text.
std::string describeExcess(uint64_t bytes, uint64_t limitBytes, const std::string &limit);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_LIMITADVICE_H
