//===- Weights.cpp - Whether weights on disk fit a configuration
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/Weights.h"

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "frontends/hf/Family.h"
#include "frontends/hf/Parameters.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/weight_key.h"

#include <filesystem>
#include <set>

using namespace bowline;
using namespace bowline::hf;

using Entry = SafetensorsDirectory::Entry;

static bool exists(const std::string &directory, absl::string_view name) {
  std::error_code ignored;
  return std::filesystem::exists(absl::StrCat(directory, "/", name), ignored);
}

static bool isWeightType(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kF16 || type == ElementType::kBF16;
}

/// "'dir/model.safetensors'", or the directory where there are several files.
static std::string placeOf(const SafetensorsDirectory &weights, const std::string &directory) {
  return absl::StrCat("'", weights.files().size() == 1 ? weights.files().front()->path() : directory, "'");
}

static absl::Status checkTensor(const Parameter &parameter, const Entry &entry) {
  const SafetensorsTensor &tensor = *entry.tensor;
  if (tensor.shape == parameter.shape && isWeightType(tensor.type))
    return absl::OkStatus();
  std::string found = DescribeTensor(tensor.type, tensor.shape);
  if (tensor.shape == parameter.shape)
    return absl::FailedPreconditionError(absl::StrCat("'", entry.file->path(), "': tensor '", tensor.name, "' is ",
                                                      found, "; supported element types are F32, F16 and BF16"));
  return absl::FailedPreconditionError(absl::StrCat(
      "'", entry.file->path(), "': tensor '", tensor.name, "' is ", found, ", but config.json asks for ",
      DescribeTensor(tensor.type, parameter.shape), "; use the config.json that belongs to these weights"));
}

/// Refuses a parameter that the index lists in a shard that does not have it.
static absl::Status checkListed(const SafetensorsDirectory &weights, const Parameter &parameter) {
  for (absl::string_view name : {absl::string_view(parameter.key), LegacyWeightKey(parameter.key)})
    if (std::string why = weights.DescribeMissing(name); !why.empty())
      return absl::FailedPreconditionError(absl::StrCat("the model needs tensor '", name, "' (",
                                                        DescribeTensor(ElementType::kF32, parameter.shape), "), ", why,
                                                        "; fetch the shard and its index again"));
  return absl::OkStatus();
}

static absl::Status checkGguf(const ModelConfig &config, const std::string &path) {
  BOWLINE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(path));
  std::map<absl::string_view, const GgufModel::Tensor *> tensors;
  for (const GgufModel::Tensor &tensor : model.tensors())
    tensors[tensor.key] = &tensor;
  for (const Parameter &parameter : parameters(config)) {
    auto found = tensors.find(parameter.key);
    if (found != tensors.end() && found->second->shape == parameter.shape) {
      tensors.erase(found);
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "'", path, "': '", parameter.key, "' ",
        found == tensors.end() ? "is missing" : absl::StrCat("is ", DescribeTensor(*found->second->stored)),
        ", but the metadata asks for the shape [", absl::StrJoin(parameter.shape, ", "), "]; use a complete model"));
  }
  if (tensors.empty())
    return absl::OkStatus();
  const GgufTensor &unused = *tensors.begin()->second->stored;
  return absl::FailedPreconditionError(absl::StrCat(
      "'", path, "': tensor '", unused.name, "' (", DescribeTensor(unused), ") belongs to no parameter of this ",
      config.family->name, " model and would be ignored; use another model"));
}

absl::StatusOr<WeightsOnDisk> hf::checkWeights(const ModelConfig &config, const std::string &directory,
                                               std::vector<std::string> *remarks) {
  if (IsGgufPath(directory)) {
    BOWLINE_RETURN_IF_ERROR(checkGguf(config, directory));
    return WeightsOnDisk::Match;
  }
  if (!exists(directory, "model.safetensors") && !exists(directory, "model.safetensors.index.json"))
    return WeightsOnDisk::None;
  BOWLINE_ASSIGN_OR_RETURN(const SafetensorsDirectory weights, SafetensorsDirectory::Open(directory));

  std::set<absl::string_view> expected;
  for (const Parameter &parameter : parameters(config)) {
    const Entry *entry = weights.Find(parameter.key);
    if (absl::string_view legacy = LegacyWeightKey(parameter.key); !entry && !legacy.empty())
      entry = weights.Find(legacy);
    if (!entry) {
      BOWLINE_RETURN_IF_ERROR(checkListed(weights, parameter));
      return absl::FailedPreconditionError(absl::StrCat(
          placeOf(weights, directory), ": no tensor '", parameter.key, "', which config.json asks for as ",
          DescribeTensor(ElementType::kF32, parameter.shape), "; use the config.json that belongs to these weights"));
    }
    BOWLINE_RETURN_IF_ERROR(checkTensor(parameter, *entry));
    expected.insert(entry->tensor->name);
  }
  const std::map<std::string, std::string> ignored = ignoredTensors(config);
  for (const auto &[name, entry] : weights.tensors())
    if (!expected.count(name) && !ignored.count(std::string(name)))
      return absl::FailedPreconditionError(absl::StrCat(
          "'", entry.file->path(), "': tensor '", name, "' (", DescribeTensor(entry.tensor->type, entry.tensor->shape),
          ") belongs to no parameter of this ", config.family->name,
          " model and would be ignored; use the config.json that belongs to these weights, or remove the tensor"));
  if (remarks)
    for (const auto &[name, shard] : weights.missing())
      remarks->push_back(absl::StrCat("this model does not need tensor '", name, "', ", weights.DescribeMissing(name)));
  return WeightsOnDisk::Match;
}
