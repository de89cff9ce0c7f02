//===- Family.h - The description of a family of models
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A family is one file, families/NAME.cpp, which defines
//
//   const Family &hf::familyNAME()
//
// and has a line in CMakeLists.txt. Nothing else names it.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_FAMILY_H
#define BOWLINE_FRONTENDS_HF_FAMILY_H

#include "absl/types/span.h"
#include "frontends/hf/ConfigReader.h"
#include "frontends/hf/ModelConfig.h"
#include "frontends/hf/ParameterList.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mlir {
class Value;
} // namespace mlir

namespace bowline::hf {

class ModelBuilder;

/// The computation of a model. Values of config.json that only its family knows are members; sizes come with each call,
/// because verification compiles models of the same architecture with smaller sizes.
class Architecture {
public:
  virtual ~Architecture() = default;

  /// Declares all parameters in the order in which the forward pass first uses them. "embed" [V, D] is among them, and
  /// "head" [V, D] where embeddings are not tied.
  virtual void declareParameters(const ModelConfig &config, ParameterList &parameters) const = 0;

  /// Builds the layers: tokens [B, S] to the hidden states after the last layer [B, S, D], before the final norm.
  virtual mlir::Value buildLayers(ModelBuilder &b, const ModelConfig &config, mlir::Value tokens) const = 0;

  /// The final norm over the last dimension.
  virtual mlir::Value buildFinalNorm(ModelBuilder &b, const ModelConfig &config, mlir::Value hidden) const = 0;

  /// Names of tensors that files of this model may hold, whatever is in them, and that are no parameters: buffers that
  /// old versions saved.
  virtual std::set<std::string> ignoredTensors(const ModelConfig &config) const { return {}; }

  /// The architecture that does the same to a sequence of `to` positions as this one to `from`, which are more; null
  /// if this one does. Lengths that only the family knows become shorter here.
  virtual std::shared_ptr<const Architecture> shortened(int64_t from, int64_t to) const { return nullptr; }
};

/// A key whose mathematics is implemented for some values only. An absent key means the first of them.
struct FixedKey {
  absl::string_view key;
  std::vector<absl::string_view> supported; // JSON texts
};

/// The keys of a family's config.json. Keys that all families share are in ConfigKeys.h.
struct Family {
  absl::string_view name;       // its `model_type`: "llama"
  absl::string_view modelClass; // its only `architectures`: "LlamaForCausalLM"

  /// Keys of which the family's builder computes the listed values alone; a config.json that says another is refused.
  std::vector<FixedKey> fixedKeys = {};
  /// Dropout rates: read, and reported where they are not zero, because training uses no dropout.
  std::vector<absl::string_view> dropoutKeys = {};
  /// Keys that change nothing in this family. The others of all families are in ConfigKeys.cpp.
  std::vector<absl::string_view> harmlessKeys = {};

  /// Reads all other keys: sets every size of `config`, and returns the family's own part. Errors stay in `reader`;
  /// callers then do not use the returned part.
  std::shared_ptr<const Architecture> (*read)(ConfigReader &reader, ModelConfig &config) = nullptr;
};

/// All families, in the order of CMakeLists.txt.
absl::Span<const Family *const> families();

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_FAMILY_H
