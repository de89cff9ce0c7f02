//===- ParameterList.h - The parameters that a family declares
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_PARAMETERLIST_H
#define BOWLINE_FRONTENDS_HF_PARAMETERLIST_H

#include "absl/strings/string_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bowline::hf {

/// How the family's own code initialises a parameter: normal around zero, or one value everywhere.
struct Initial {
  enum class Kind { Normal, Fill } kind;
  double value; // standard deviation, or the value
};

/// The role of a parameter in its layer, in the words of #graph.role.
struct Role {
  enum class Kind { None, Column, Row, Keys, Fused, Vocabulary } kind = Kind::None;
  std::vector<int64_t> parts = {}; // for Fused: sizes along the output
  int64_t sharedBy = 1;            // for Keys: the heads of queries that share one of keys
};

struct Parameter {
  std::string symbol;         // name in the graph, without "@": "layers.0.attn.wq"
  std::string key;            // name in safetensors: "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape; // as stored
  Initial initial;
  Role role;
  std::optional<int64_t> layer;
  bool isTransposed = false; // a matrix [in, out], as GPT-2's Conv1D has it; in blocks of bits it is [out, in]
};

/// Collects parameters. Those of a layer are named without its prefixes.
class ParameterList {
public:
  /// Following parameters are those of layer `index`: their symbols begin with "layers.<index>.", and their keys with
  /// `keys`, the index and a dot.
  void enterLayer(int64_t index, absl::string_view keys);
  void leaveLayers();

  void normal(Role role, absl::string_view symbol, absl::string_view key, std::vector<int64_t> shape, double stddev);
  /// A matrix [in, out].
  void normalTransposed(Role role, absl::string_view symbol, absl::string_view key, std::vector<int64_t> shape,
                        double stddev);
  /// Adds a vector with one value everywhere.
  void fill(Role role, absl::string_view symbol, absl::string_view key, int64_t size, double value);

  std::vector<Parameter> take() { return std::move(parameters); }

private:
  void add(Role role, absl::string_view symbol, absl::string_view key, std::vector<int64_t> shape, Initial initial);

  std::vector<Parameter> parameters;
  std::optional<int64_t> layer;
  std::string symbolPrefix, keyPrefix;
};

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_PARAMETERLIST_H
