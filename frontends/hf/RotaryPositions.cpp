//===- RotaryPositions.cpp - Rotary positions in config.json
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/RotaryPositions.h"

#include "absl/strings/str_cat.h"

#include <array>
#include <optional>

using namespace bowline;
using namespace bowline::hf;
using nlohmann::json;

namespace {
enum Kind : size_t { Default, Linear, Llama3 };
constexpr std::array<absl::string_view, 3> kKinds = {"default", "linear", "llama3"};
} // namespace

/// The kind has the name "rope_type", and "type" in the oldest files; many have both.
static Kind readKind(ConfigReader &inner) {
  size_t kind = inner.choiceOr("rope_type", kKinds, Default);
  size_t older = inner.choiceOr("type", kKinds, kind);
  if (inner.has("rope_type") && older != kind)
    inner.fail("type", absl::StrCat("contradicts \"rope_type\" = \"", kKinds[kind], "\"; keep one"));
  return static_cast<Kind>(older);
}

/// True for a value that leaves these kinds as they are: they read none of these keys, and other kinds take the value
/// for no change. Positions before scaling change nothing where nothing depends on them. A file that names the kind
/// `default` asks for no scaling, by whatever factor, and the three positions of a token of text are equal.
static bool isNeutral(ConfigReader &inner, absl::string_view key, bool isNamedDefault) {
  const json &value = *inner.find(key);
  if (isNamedDefault && (key == "factor" || key == "attention_factor" || key == "mrope_section"))
    return true;
  if (key == "factor" || key == "attention_factor")
    return value == 1;
  return key == "original_max_position_embeddings" && value.is_number();
}

static void refuseOthers(ConfigReader &inner, Kind kind) {
  const bool isNamedDefault = kind == Default && (inner.has("rope_type") || inner.has("type"));
  for (const std::string &key : inner.unread())
    if (inner.has(key) && !isNeutral(inner, key, isNamedDefault))
      inner.fail(key, absl::StrCat("is not supported with rope_type \"", kKinds[kind],
                                   "\", and it may change the mathematics; remove it if it does not"));
}

static RopeScaling readScaling(ConfigReader &inner) {
  Kind kind = readKind(inner);
  auto number = [&](absl::string_view key) {
    if (inner.status().ok() && !inner.has(key))
      inner.fail(key, absl::StrCat("is not supported; rope_type \"", kKinds[kind], "\" needs a number"));
    return inner.positiveNumberOr(key, 1);
  };
  RopeScaling scaling;
  if (kind != Default) {
    scaling.factor = number("factor");
    if (scaling.factor < 1)
      inner.fail("factor", "is not supported; it should be at least 1");
  }
  if (kind == Llama3) {
    scaling.original = inner.positiveInteger("original_max_position_embeddings", kMaxPositions);
    scaling.lowTurns = number("low_freq_factor");
    scaling.highTurns = number("high_freq_factor");
    if (scaling.lowTurns >= scaling.highTurns)
      inner.fail("low_freq_factor",
                 absl::StrCat("should be less than \"high_freq_factor\" = ", scaling.highTurns, "; use a smaller one"));
  }
  refuseOthers(inner, kind);
  return scaling;
}

void hf::readRotaryPositions(ConfigReader &reader, ModelConfig &config) {
  constexpr double kDefaultTheta = 10000.0;
  bool isBeside = reader.has("rope_theta");
  config.ropeTheta = reader.positiveNumberOr("rope_theta", kDefaultTheta);
  std::optional<RopeScaling> scaling;
  for (absl::string_view key : {"rope_scaling", "rope_parameters"}) {
    const json *parameters = reader.take(key);
    if (!parameters)
      continue;
    if (!parameters->is_object()) {
      reader.fail(key, "is not supported; it should be an object");
      continue;
    }
    ConfigReader inner(*parameters, absl::StrCat(reader.place(), ": in \"", key, "\""));
    inner.require("partial_rotary_factor", {"1"});
    double theta = inner.positiveNumberOr("rope_theta", config.ropeTheta);
    RopeScaling here = readScaling(inner);
    if (isBeside && theta != config.ropeTheta)
      inner.fail("rope_theta",
                 absl::StrCat("contradicts \"rope_theta\" = ", config.ropeTheta, " outside of it; keep one"));
    reader.fail(inner.status());
    if (scaling && !(here == *scaling))
      reader.fail(key, "contradicts \"rope_scaling\"; keep one");
    config.ropeTheta = theta;
    scaling = here;
  }
  config.ropeScaling = scaling.value_or(RopeScaling());
}
