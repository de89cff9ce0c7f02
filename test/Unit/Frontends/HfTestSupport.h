//===- HfTestSupport.h - The models that tests read
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_FRONTENDS_HFTESTSUPPORT_H
#define BOWLINE_TEST_UNIT_FRONTENDS_HFTESTSUPPORT_H

#include "frontends/hf/ModelConfig.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <string>

namespace bowline::hf::test {

inline const char *const kModels[] = {"llama-tiny", "llama-tied", "llama3-tiny",  "linear-tiny",
                                      "qwen2-tiny", "qwen3-tiny", "mistral-tiny", "gpt2-tiny"};

inline std::string modelDirectory(const std::string &name) { return std::string(BOWLINE_TEST_DIR "/Models/") + name; }

inline ModelConfig configOf(const std::string &name) {
  absl::StatusOr<ModelConfig> config = readConfig(modelDirectory(name));
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : ModelConfig();
}

/// "llama-tiny" as a name of a test.
inline std::string testName(const testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  for (char &c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

} // namespace bowline::hf::test

#endif // BOWLINE_TEST_UNIT_FRONTENDS_HFTESTSUPPORT_H
