//===- RotaryDecoder.h - Parts that families of Llama's kind share
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Decoders with RMSNorm in front of each block, rotary positions, grouped heads and a gated feed-forward part (Touvron
// et al., 2023; Ainslie et al., 2023). A family calls the shared parts and says how its attention differs.
//
//   symbol                   shape       key in safetensors
//   embed                    [V, D]      model.embed_tokens.weight
//   layers.N.attn_norm       [D]         model.layers.N.input_layernorm.weight
//   layers.N.attn...                     as the family says: declareProjection and others
//   layers.N.attn.wo         [D, H Dh]   model.layers.N.self_attn.o_proj.weight
//   layers.N.mlp_norm        [D]         model.layers.N.post_attention_layernorm.weight
//   layers.N.mlp.w_gate      [F, D]      model.layers.N.mlp.gate_proj.weight
//   layers.N.mlp.w_up        [F, D]      model.layers.N.mlp.up_proj.weight
//   layers.N.mlp.w_down      [D, F]      model.layers.N.mlp.down_proj.weight
//   norm                     [D]         model.norm.weight
//   head, if not tied        [V, D]      lm_head.weight
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_ROTARYDECODER_H
#define BOWLINE_FRONTENDS_HF_ROTARYDECODER_H

#include "frontends/hf/Family.h"
#include "frontends/hf/ModelBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace bowline::hf {

//===----------------------------------------------------------------------===//
// config.json
//===----------------------------------------------------------------------===//

/// Fixed keys that these families share, and those of one of them.
std::vector<FixedKey> rotaryDecoderFixedKeys(std::vector<FixedKey> ofFamily);
std::vector<absl::string_view> rotaryDecoderDropoutKeys();

/// The meaning of an absent key in a family.
struct AbsentSizes {
  int64_t kvHeads = 0; // 0: as many as heads
  int64_t headDim = 0; // 0: the hidden size divided by the heads
};

/// Reads every size of the configuration.
void readRotaryDecoder(ConfigReader &reader, ModelConfig &config, AbsentSizes absent = {});

/// Reads `layer_types`, which may say for each layer that it sees all keys.
void requireFullAttention(ConfigReader &reader, const ModelConfig &config);

/// Reads `layer_types`, `use_sliding_window`, `sliding_window` and `max_window_layers`, which together say for each
/// layer whether its queries see the last keys alone. Where a window hides a key, the model takes shorter sequences, of
/// which it hides none (limitToWindow).
void requireNoWindow(ConfigReader &reader, ModelConfig &config);

/// Layers from \p fullLayers on see the last \p window keys alone, fewer than the model has positions: takes sequences
/// of so many positions, with a remark.
void limitToWindow(const ConfigReader &reader, ModelConfig &config, int64_t window, int64_t fullLayers);

/// Reads `sliding_window` of a family without windows, in the same way; null and absent are none.
void readUnsupportedWindow(ConfigReader &reader, ModelConfig &config);

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// The projection to queries, keys or values, as \p which says ('q', 'k' or 'v'): attn.w<which> [heads Dh, D].
void declareProjection(const ModelConfig &config, ParameterList &parameters, char which);
/// The bias of that projection: attn.b<which> [heads Dh].
void declareProjectionBias(const ModelConfig &config, ParameterList &parameters, char which);

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

struct RopeTables {
  Value cosine, sine; // [S, Dh / 2]
};

/// Builds one layer.
class DecoderLayer {
public:
  DecoderLayer(ModelBuilder &b, const ModelConfig &config, RopeTables rope, int64_t index);

  /// x [B, S, D] to queries, keys or values [B, S, heads Dh].
  Value project(Value x, char which);
  Value addProjectionBias(Value y, char which);
  /// [B, S, heads Dh] to [B, S, heads, Dh].
  Value splitHeads(Value y);
  /// RMSNorm over the last dimension, of the parameter \p symbol and the module \p module of the layer.
  Value norm(Value x, llvm::StringRef symbol, llvm::StringRef module);
  /// Causal attention after rotary positions: query [B, S, H, Dh], key and value [B, S, K, Dh] to [B, S, H, Dh]. With a
  /// \p window each query sees its last keys alone, that of its own position among them; 0: all.
  Value attend(Value query, Value key, Value value, int64_t window = 0);

private:
  friend class RotaryDecoder;
  Value build(Value hidden, llvm::function_ref<Value(DecoderLayer &, Value)> attention);
  Value feedForward(Value x);

  ModelBuilder &b;
  const ModelConfig &config;
  RopeTables rope;
  std::string symbols, modules; // prefixes in the graph and in the Hugging Face model
};

/// The architecture of a family that differs in its attention.
class RotaryDecoder : public Architecture {
public:
  void declareParameters(const ModelConfig &config, ParameterList &parameters) const final;
  Value buildLayers(ModelBuilder &b, const ModelConfig &config, Value tokens) const final;
  Value buildFinalNorm(ModelBuilder &b, const ModelConfig &config, Value hidden) const final;
  std::set<std::string> ignoredTensors(const ModelConfig &config) const final;

private:
  /// Declares the parameters of one layer's attention in front of the output projection.
  virtual void declareAttention(const ModelConfig &config, ParameterList &parameters) const = 0;
  /// Builds attention in front of the output projection: x [B, S, D], which is normalised, to the heads' results
  /// [B, S, H, Dh].
  virtual Value buildAttention(DecoderLayer &layer, Value x) const = 0;
};

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_ROTARYDECODER_H
