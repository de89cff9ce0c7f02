//===- Config.cpp - Reads config.json
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "absl/algorithm/container.h"
#include "frontends/hf/ConfigKeys.h"
#include "frontends/hf/ConfigReader.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/ModelConfig.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/json.h"

using namespace bowline;
using namespace bowline::hf;
using nlohmann::json;

static constexpr size_t kMaxConfigBytes = size_t{16} << 20;

static const Family *readFamily(ConfigReader &reader) {
  std::vector<absl::string_view> names;
  for (const Family *family : families())
    names.push_back(family->name);
  return families()[reader.choice("model_type", names)];
}

/// `architectures` says which model stands on the shared body: weights of a classifier are no language model.
static void readArchitectures(ConfigReader &reader, const Family &family) {
  const json *value = reader.take("architectures");
  if (value && !(value->is_array() && value->size() == 1 && (*value)[0] == std::string(family.modelClass)))
    reader.fail("architectures", absl::StrCat("is not supported; use [\"", family.modelClass, "\"]"));
}

static void readFixedAndDropout(ConfigReader &reader, ModelConfig &config) {
  for (const FixedKey &fixed : fixedKeys(*config.family))
    reader.require(fixed.key, fixed.supported);
  for (absl::string_view key : config.family->dropoutKeys) {
    double rate = reader.nonNegativeNumberOr(key, 0);
    if (rate >= 1)
      reader.fail(key, "is not a rate of dropout; it should be in [0, 1)");
    if (rate > 0)
      config.remarks.push_back(
          absl::StrCat(reader.place(), ": \"", key, "\" = ", rate, " has no effect: training uses no dropout"));
  }
}

static void refuseUnknownKeys(ConfigReader &reader, const Family &family) {
  for (const std::string &key : reader.unread())
    if (!isHarmlessKey(family, key))
      reader.fail(key, absl::StrCat("is not a known key of model_type \"", family.name,
                                    "\", so it may change the mathematics; remove it if it does not"));
}

static absl::StatusOr<ModelConfig> interpret(const json &document, absl::string_view fileName) {
  std::string where = absl::StrCat("'", fileName, "'");
  if (!document.is_object())
    return absl::InvalidArgumentError(
        absl::StrCat(where, " holds ", DescribeJsonType(document), "; a model's config.json is an object"));
  ConfigReader reader(document, where);
  ModelConfig config;
  config.family = readFamily(reader);
  BOWLINE_RETURN_IF_ERROR(reader.status());

  config.architecture = config.family->read(reader, config);
  config.functionKeys = reader.ofFunction();
  for (const FixedKey &fixed : config.family->fixedKeys)
    config.functionKeys[std::string(fixed.key)] = {json::parse(fixed.supported.front()),
                                                   absl::c_linear_search(fixed.supported, "null")};
  readArchitectures(reader, *config.family);
  readFixedAndDropout(reader, config);
  refuseUnknownKeys(reader, *config.family);
  BOWLINE_RETURN_IF_ERROR(reader.status());
  return config;
}

absl::StatusOr<ModelConfig> hf::parseConfig(absl::string_view text, absl::string_view fileName) {
  BOWLINE_ASSIGN_OR_RETURN(const json document, ParseJson(text, absl::StrCat("'", fileName, "'")));
  return interpret(document, fileName);
}

absl::StatusOr<ModelConfig> hf::readConfig(const std::string &directory) {
  if (IsGgufPath(directory)) {
    BOWLINE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(directory));
    return interpret(model.config(), directory);
  }
  std::string path = absl::StrCat(directory, "/config.json");
  BOWLINE_ASSIGN_OR_RETURN(const json document, ReadJsonFile(path, kMaxConfigBytes));
  return interpret(document, path);
}
