//===- Config.cpp - Reads config.json
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "frontends/hf/ConfigKeys.h"
#include "frontends/hf/ConfigReader.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/ModelConfig.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/json.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

using namespace bowline;
using namespace bowline::hf;
using nlohmann::json;

static constexpr size_t kMaxConfigBytes = size_t{16} << 20;

/// The family whose class `architectures` names, as the oldest files say which model they are; null where none is.
static const Family *familyOfClass(const json &document) {
  auto classes = document.find("architectures");
  if (classes == document.end() || !classes->is_array() || classes->size() != 1)
    return nullptr;
  for (const Family *family : families())
    if ((*classes)[0] == std::string(family->modelClass))
      return family;
  return nullptr;
}

static const Family *readFamily(ConfigReader &reader, const json &document, std::vector<std::string> &remarks) {
  std::vector<absl::string_view> names;
  for (const Family *family : families())
    names.push_back(family->name);
  const Family *ofClass = reader.has("model_type") ? nullptr : familyOfClass(document);
  if (!ofClass)
    return families()[reader.choice("model_type", names)];
  reader.ignore("model_type");
  remarks.push_back(absl::StrCat(reader.place(), ": no \"model_type\"; \"architectures\" = [\"", ofClass->modelClass,
                                 "\"] says that it is \"", ofClass->name, "\""));
  return ofClass;
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

/// `auto_map` names code beside the weights, which is not read. Under the name of the family's class it stands for the
/// computation of this class; under another one it is another model.
static void readAutoMap(ConfigReader &reader, ModelConfig &config) {
  reader.ignore("auto_map");
  if (!reader.has("auto_map"))
    return;
  const json &map = *reader.find("auto_map");
  std::string name(config.family->modelClass);
  auto model = map.is_object() ? map.find("AutoModelForCausalLM") : map.end();
  if (!map.is_object() ||
      (model != map.end() && !(model->is_string() && absl::EndsWith(model->get<std::string>(), name))))
    return reader.fail("auto_map", absl::StrCat("names code for another model than ", name,
                                                ", which is not read; use a model of transformers' own classes"));
  config.remarks.push_back(absl::StrCat(reader.place(),
                                        ": \"auto_map\" names code beside the weights, which is not read: the model "
                                        "computes the same as ",
                                        name, " of transformers"));
}

static void noteOtherExecution(const ConfigReader &reader, ModelConfig &config) {
  std::vector<std::string> keys;
  for (const std::string &key : reader.unread())
    if (const json *value = reader.find(key); value && choosesOtherExecution(key, *value))
      keys.push_back(absl::StrCat("\"", key, "\""));
  if (!keys.empty())
    config.remarks.push_back(absl::StrCat(reader.place(), ": no effect: ", absl::StrJoin(keys, ", "),
                                          "; such keys choose another way to compute the same function, and here the "
                                          "compiler chooses it"));
}

/// A key whose value is null counts as absent, and what a library keeps for itself no model reads. The user gets to
/// know which keys were left out for these reasons.
static void refuseUnknownKeys(ConfigReader &reader, ModelConfig &config) {
  const Family &family = *config.family;
  std::vector<std::string> leftOut;
  // Where a family has a window unless its size is null, these would contradict it.
  auto window = reader.ofFunction().find("sliding_window");
  const bool hasWindow =
      window != reader.ofFunction().end() && window->second.nullIsValue && !reader.isNull("sliding_window");
  // With a size of null no layer has one, whatever this key says.
  const bool hasNoWindow = reader.isNull("sliding_window");
  auto contradicts = [&](absl::string_view key) {
    return hasWindow && (key == "use_sliding_window" || key == "layer_types");
  };
  for (const std::string &key : reader.unread()) {
    if (isHarmlessKey(family, key))
      continue;
    if (!reader.has(key) || isPrivateKey(key) || (isNeutral(key, *reader.find(key)) && !contradicts(key)) ||
        (key == "use_sliding_window" && hasNoWindow && reader.find(key)->is_boolean()))
      leftOut.push_back(absl::StrCat("\"", key, "\""));
    else if (const std::string nearest = reader.nearestAbsent(key); !nearest.empty())
      reader.fail(key,
                  absl::StrCat("is not a known key of model_type \"", family.name, "\"; is \"", nearest, "\" meant?"));
    else
      reader.fail(key, absl::StrCat("is not a known key of model_type \"", family.name,
                                    "\", so it may change the mathematics; remove it if it does not"));
  }
  if (!leftOut.empty())
    config.remarks.push_back(absl::StrCat(reader.place(), ": no effect: ", absl::StrJoin(leftOut, ", "),
                                          "; a key that is null counts as absent, one that begins with _ is a "
                                          "library's own, and others say that something is off"));
}

static absl::StatusOr<ModelConfig> interpret(const json &document, absl::string_view fileName) {
  std::string where = absl::StrCat("'", fileName, "'");
  if (!document.is_object())
    return absl::InvalidArgumentError(
        absl::StrCat(where, " holds ", DescribeJsonType(document), "; a model's config.json is an object"));
  ConfigReader reader(document, where);
  ModelConfig config;
  config.family = readFamily(reader, document, config.remarks);
  BOWLINE_RETURN_IF_ERROR(reader.status());

  config.architecture = config.family->read(reader, config);
  config.functionKeys = reader.ofFunction();
  for (const FixedKey &fixed : config.family->fixedKeys)
    config.functionKeys[std::string(fixed.key)] = {json::parse(fixed.supported.front()),
                                                   absl::c_linear_search(fixed.supported, "null")};
  readArchitectures(reader, *config.family);
  readFixedAndDropout(reader, config);
  readAutoMap(reader, config);
  noteOtherExecution(reader, config);
  refuseUnknownKeys(reader, config);
  BOWLINE_RETURN_IF_ERROR(reader.status());
  return config;
}

absl::StatusOr<ModelConfig> hf::parseConfig(absl::string_view text, absl::string_view fileName) {
  BOWLINE_ASSIGN_OR_RETURN(const json document, ParseJson(text, absl::StrCat("'", fileName, "'")));
  return interpret(document, fileName);
}

/// Refuses a path that is no directory with a config.json, but leads to one.
static absl::Status checkDirectory(const std::string &directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_regular_file(directory, ignored))
    return absl::InvalidArgumentError(
        absl::StrCat("'", directory, "' is a file; give the directory that has config.json",
                     fs::exists(fs::path(directory).parent_path() / "config.json", ignored)
                         ? absl::StrCat(", '", fs::path(directory).parent_path().string(), "',")
                         : "",
                     " or a file *.gguf or *.mlir"));
  if (fs::exists(fs::path(directory) / "config.json", ignored))
    return absl::OkStatus();
  std::string found;
  for (fs::directory_iterator entries(directory, ignored), end; !ignored && entries != end; entries.increment(ignored))
    if (fs::exists(entries->path() / "config.json", ignored))
      found = std::max(found, entries->path().string());
  if (found.empty())
    return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("'", directory, "' has no config.json, but '", found, "' in it has; give that directory"));
}

absl::StatusOr<ModelConfig> hf::readConfig(const std::string &directory) {
  if (IsGgufPath(directory)) {
    BOWLINE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(directory));
    BOWLINE_ASSIGN_OR_RETURN(ModelConfig config, interpret(model.config(), directory));
    if (config.positionsSource == ModelConfig().positionsSource)
      config.positionsSource = "as its metadata says";
    return config;
  }
  BOWLINE_RETURN_IF_ERROR(checkDirectory(directory));
  std::string path = absl::StrCat(directory, "/config.json");
  BOWLINE_ASSIGN_OR_RETURN(const json document, ReadJsonFile(path, kMaxConfigBytes));
  return interpret(document, path);
}
