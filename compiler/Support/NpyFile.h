//===- NpyFile.h - Tensors in NumPy's .npy files -----------------*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 and 2, C order,
// little-endian f32, f64, i32 and i64.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_SUPPORT_NPYFILE_H
#define BOWLINE_COMPILER_SUPPORT_NPYFILE_H

#include "dialects/Graph/HostTensor.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace bowline {

enum class NpyType { F32, F64, I32, I64 };

inline bool isFloat(NpyType type) { return type == NpyType::F32 || type == NpyType::F64; }

struct NpyArray {
  NpyType type = NpyType::F64;
  graph::HostTensor tensor;
};

/// Parses a whole file. Errors begin with `name` and say what to do. An i64 beyond 2^53 is an error: HostTensor could
/// not hold it exactly.
llvm::Expected<NpyArray> parseNpy(llvm::StringRef bytes, llvm::StringRef name);
llvm::Expected<NpyArray> readNpyFile(llvm::StringRef path);

/// Floats are rounded to nearest for F32. The tensor of an integer type must hold integers of that type.
std::string formatNpy(const NpyArray &array);
/// Other processes see the file as it was before or complete.
llvm::Error writeNpyFile(llvm::StringRef path, const NpyArray &array);

} // namespace bowline

#endif // BOWLINE_COMPILER_SUPPORT_NPYFILE_H
