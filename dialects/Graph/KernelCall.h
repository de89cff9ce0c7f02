//===- KernelCall.h - Calls of hand-written kernels, as operations see them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_KERNELCALL_H
#define BOWLINE_DIALECTS_GRAPH_KERNELCALL_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OperationSupport.h"

namespace bowline::graph {

/// Builds the configuration that specialises a kernel: named values that are i64, lists of i64, f64 or strings.
class KernelConfig {
public:
  explicit KernelConfig(mlir::MLIRContext *context) : builder(context) {}

  KernelConfig &integer(llvm::StringRef name, int64_t value);
  KernelConfig &integers(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  KernelConfig &real(llvm::StringRef name, double value);
  KernelConfig &text(llvm::StringRef name, llvm::StringRef value);

  mlir::DictionaryAttr get() const;

private:
  mlir::Builder builder;
  llvm::SmallVector<mlir::NamedAttribute> attributes;
};

/// A use of a kernel: its configuration, the types of the arguments that it reads (`operands`), and the types of those
/// that it writes (`results`). Workspace is in neither list.
struct KernelUse {
  mlir::DictionaryAttr config; ///< null where the kernel has none
  llvm::SmallVector<mlir::RankedTensorType> operands, results;
  /// True if generated code computes the results from the kernel's own result in f32.
  bool hasEpilogue = false;

  /// The value of `name` in the configuration; 0 or empty where it lacks the name.
  int64_t integer(llvm::StringRef name) const;
  llvm::ArrayRef<int64_t> integers(llvm::StringRef name) const;
  llvm::APFloat real(llvm::StringRef name) const;
  llvm::StringRef text(llvm::StringRef name) const;
};

/// The operation whose KernelModel has this kernel name; none if no single operation has. The dialects of such
/// operations must be loaded.
std::optional<mlir::RegisteredOperationName> operationOfKernel(mlir::MLIRContext *context, llvm::StringRef kernel);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_KERNELCALL_H
