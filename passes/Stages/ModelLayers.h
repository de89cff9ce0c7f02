//===- ModelLayers.h - The layers of a model, from its parameters' names
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_MODELLAYERS_H
#define BOWLINE_PASSES_STAGES_MODELLAYERS_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace bowline {

/// The layers of a model: names of parameters are components between points, and layers are the numbers behind the
/// prefix under which most parameters have one. Of `embed`, `layers.0.wq`, `layers.1.wq`, `layers.1.experts.0.w`, the
/// prefix is `layers`.
class ModelLayers {
public:
  /// Fails with a diagnostic at the module where no parameter has a numbered component, or a number from 0 to the last
  /// is missing.
  static mlir::FailureOr<ModelLayers> find(mlir::ModuleOp module);

  /// Nothing for a parameter that is in no layer.
  std::optional<int64_t> layerOf(llvm::StringRef parameter) const;
  int64_t count() const { return numLayers; }
  /// "'layers.0' to 'layers.11'".
  std::string describe() const;

private:
  std::string prefix;
  int64_t numLayers = 0;
};

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_MODELLAYERS_H
