//===- ConfigCases.h - Small configurations for tests of config.json
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_FRONTENDS_CONFIGCASES_H
#define BOWLINE_TEST_UNIT_FRONTENDS_CONFIGCASES_H

#include "frontends/hf/Family.h"
#include "frontends/hf/ModelConfig.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <nlohmann/json.hpp>
#include <string>

namespace bowline::hf::test {

inline const Family &familyOf(absl::string_view name) {
  for (const Family *family : families())
    if (family->name == name)
      return *family;
  ADD_FAILURE() << "no family " << name;
  return *families().front();
}

/// The keys that a family needs; all but GPT-2 have the same.
inline nlohmann::json minimal(absl::string_view family) {
  if (family == "gpt2")
    return {{"model_type", "gpt2"}, {"vocab_size", 97}, {"n_embd", 24},
            {"n_layer", 2},         {"n_head", 3},      {"n_positions", 16}};
  return {{"model_type", std::string(family)},
          {"vocab_size", 97},
          {"hidden_size", 24},
          {"intermediate_size", 31},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 6},
          {"num_key_value_heads", 3},
          {"max_position_embeddings", 16}};
}

inline absl::StatusOr<ModelConfig> parse(const nlohmann::json &document) {
  return parseConfig(document.dump(), "dir/config.json");
}

/// A value of a key that is refused.
struct Refused {
  absl::string_view family;
  const char *key;
  const char *value; // JSON text
  const char *says;  // after file, key and value
};

inline void expectRefused(nlohmann::json document, const Refused &test) {
  document[test.key] = nlohmann::json::parse(test.value);
  absl::Status status = parse(document).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.key << " = " << test.value;
  std::string message(status.message());
  EXPECT_THAT(message, testing::HasSubstr("'dir/config.json'"));
  EXPECT_THAT(message, testing::HasSubstr(std::string("\"") + test.key + "\""));
  EXPECT_THAT(message, testing::HasSubstr(document[test.key].dump()));
  EXPECT_THAT(message, testing::HasSubstr(test.says));
}

} // namespace bowline::hf::test

#endif // BOWLINE_TEST_UNIT_FRONTENDS_CONFIGCASES_H
