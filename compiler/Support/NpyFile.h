//===- NpyFile.h - Tensors in NumPy's .npy files -----------------*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads .npy files with runtime/base/npy.h, and writes .npy files with elements of f32, f64, i32 or i64.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_SUPPORT_NPYFILE_H
#define BOWLINE_COMPILER_SUPPORT_NPYFILE_H

#include "dialects/Graph/HostTensor.h"
#include "types/element_type.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace bowline {

inline bool isFloat(ElementType type) { return type == ElementType::kF32 || type == ElementType::kF64; }

struct NpyArray {
  ElementType type = ElementType::kF64;
  graph::HostTensor tensor;
};

/// Parses the bytes of a whole file. Errors begin with `name` and advise a remedy. An i64 beyond 2^53 is an error,
/// because HostTensor cannot hold it exactly.
llvm::Expected<NpyArray> parseNpyTensor(llvm::StringRef bytes, llvm::StringRef name);
llvm::Expected<NpyArray> readNpyFile(llvm::StringRef path);

/// Returns the bytes of a .npy file. Rounds floats to nearest for f32. A tensor of an integer type must hold integers
/// of that type.
std::string formatNpy(const NpyArray &array);
/// Writes a file atomically: other processes see either the old or the complete new content.
llvm::Error writeNpyFile(llvm::StringRef path, const NpyArray &array);

} // namespace bowline

#endif // BOWLINE_COMPILER_SUPPORT_NPYFILE_H
