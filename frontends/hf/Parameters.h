//===- Parameters.h - The parameters of a model and their names
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_PARAMETERS_H
#define BOWLINE_FRONTENDS_HF_PARAMETERS_H

#include "frontends/hf/ModelConfig.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bowline::hf {

/// How the family's own code initialises a parameter: normal around zero, or one value everywhere.
struct Initial {
  enum class Kind { Normal, Fill } kind;
  double value; // standard deviation, or the value
};

/// What a parameter is to its layer: #graph.role, whose words these are.
struct Role {
  enum class Kind { None, Column, Row, Keys, Fused, Vocabulary } kind = Kind::None;
  std::vector<int64_t> parts = {}; // of Fused: sizes along the output
  int64_t sharedBy = 1;            // of Keys: heads of queries for each of them
};

struct Parameter {
  std::string symbol;         // in the graph, without "@": "layers.0.attn.wq"
  std::string key;            // of the tensor in safetensors: "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape; // as stored
  Initial initial;
  Role role;
  std::optional<int64_t> layer;
};

/// The parameters in the order in which the forward pass first uses them; symbols and keys are unique.
///
///   Llama, Qwen2                                  GPT-2
///   embed [V, D]                                  embed [V, D], positions [P, D]
///   layers.N.attn_norm [D]                        layers.N.attn_norm.{scale,bias} [D]
///   layers.N.attn.wq [H Dh, D], wk, wv [K Dh, D]  layers.N.attn.wqkv [D, 3 D], bqkv [3 D]
///   (Qwen2) bq [H Dh], bk, bv [K Dh]
///   layers.N.attn.wo [D, H Dh]                    layers.N.attn.wo [D, D], bo [D]
///   layers.N.mlp_norm [D]                         layers.N.mlp_norm.{scale,bias} [D]
///   layers.N.mlp.{w_gate,w_up} [F, D]             layers.N.mlp.w_up [D, F], b_up [F]
///   layers.N.mlp.w_down [D, F]                    layers.N.mlp.w_down [F, D], b_down [D]
///   norm [D]                                      norm.{scale,bias} [D]
///   (untied) head [V, D]                          (untied) head [V, D]
std::vector<Parameter> parameters(const ModelConfig &config);

/// Names of tensors that files of this model may hold besides its parameters: buffers that old versions saved, and the
/// second copy of a tied embedding.
bool isHarmlessTensor(const ModelConfig &config, absl::string_view key);

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_PARAMETERS_H
