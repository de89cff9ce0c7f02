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

/// \p result is a plan that exceeds `options.memoryLimit`. Returns the end of a message about it, "; use ..." or
/// "; parameters ... take ...". For training it tries each choice by compiling it without code before it names it.
/// Returns an empty text if it knows no remedy. \p limit is the user's text of the limit.
std::string adviseOnLimit(const CompileOptions &options, const CompileResult &result, const std::string &limit);

/// Returns "1.1 MiB, more than --memory-limit 1MiB", with exact bytes where both sizes are formatted alike. \p limit is
/// the user's text.
std::string describeExcess(uint64_t bytes, uint64_t limitBytes, const std::string &limit);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_LIMITADVICE_H
