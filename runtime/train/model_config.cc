#include "runtime/train/model_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/json.h"
#include "runtime/train/model_state.h"

namespace bowline {
namespace {

using nlohmann::json;

bool IsThere(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

// Forms of the same: older files have the first beside "rope_theta", newer ones the second with it.
constexpr const char* kRotations[] = {"rope_scaling", "rope_parameters"};

bool IsOfRotation(absl::string_view key) {
  return std::find(std::begin(kRotations), std::end(kRotations), key) != std::end(kRotations);
}

// Writers print an epsilon of f32 or of f64.
bool IsSame(const json& a, const json& b) {
  constexpr double kRelative = 1e-6;
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  return std::abs(x - y) <= kRelative * std::max(std::abs(x), std::abs(y));
}

// Whether every layer sees all keys, whatever "use_sliding_window" says: frontends/hf/RotaryDecoder.cpp refuses others.
bool WindowHidesNothing(const json& config) {
  const auto number = [&](const char* key, int64_t absent) {
    const auto found = config.find(key);
    return found != config.end() && found->is_number_integer() ? found->get<int64_t>() : absent;
  };
  if (IsThere(config, "layer_types")) return true;  // compared by itself
  if (config.contains("sliding_window") && !IsThere(config, "sliding_window")) return true;
  return number("sliding_window", 4096) >= number("max_position_embeddings", std::numeric_limits<int64_t>::max()) ||
         number("max_window_layers", 28) >= number("num_hidden_layers", std::numeric_limits<int64_t>::max());
}

// The function's `keys` (kFunctionKeysAttachment) in `config`, in one form: with the values that absent keys
// mean, and with "rope_theta" apart from "rope_scaling", which is an empty object where positions are not scaled.
json Normalized(const json& config, const json& keys) {
  json result = json::object();
  for (const auto& [key, meaning] : keys.items()) {
    if (IsOfRotation(key)) continue;
    const bool null_is_a_value = meaning.contains("null") && meaning["null"] == true;
    if (IsThere(config, key.c_str()) || (null_is_a_value && config.contains(key))) {
      result[key] = config[key];
    } else if (meaning.contains("absent")) {
      result[key] = meaning["absent"];
    }
  }
  // An absent size of heads follows from two others, in most families.
  if (result.contains("head_dim") && result["head_dim"] == 0 && IsThere(config, "hidden_size") &&
      IsThere(config, "num_attention_heads")) {
    const json &width = config["hidden_size"], &heads = config["num_attention_heads"];
    if (width.is_number_unsigned() && heads.is_number_unsigned() && heads > 0) {
      result["head_dim"] = width.get<uint64_t>() / heads.get<uint64_t>();
    }
  }
  // A plan has no windows that this key switches on, so that its config.json switches on none that hides a key.
  if (result.contains("use_sliding_window") && WindowHidesNothing(config)) result["use_sliding_window"] = false;
  json scaling = json::object();
  for (const char* key : kRotations) {
    if (IsThere(config, key) && config[key].is_object()) scaling = config[key];
  }
  if (IsThere(scaling, "rope_theta")) result["rope_theta"] = scaling["rope_theta"];
  if (IsThere(scaling, "type") && !IsThere(scaling, "rope_type")) scaling["rope_type"] = scaling["type"];
  scaling.erase("type");
  scaling.erase("rope_theta");
  for (const char* neutral : {"attention_factor", "partial_rotary_factor"}) {
    if (scaling.contains(neutral) && scaling[neutral] == 1) scaling.erase(neutral);
  }
  for (auto entry = scaling.begin(); entry != scaling.end();) {
    entry = entry->is_null() ? scaling.erase(entry) : std::next(entry);
  }
  if (IsThere(scaling, "rope_type") && scaling["rope_type"] == "linear" && scaling.value("factor", json()) == 1) {
    scaling = json::object();
  }
  if (!IsThere(scaling, "rope_type") || scaling["rope_type"] == "default") scaling = json::object();
  result["rope_scaling"] = scaling;
  return result;
}

void AddDifference(const std::string& key, const json& there, const json& here, std::vector<std::string>& differences) {
  const auto text = [](const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
  if (there.is_object() && here.is_object() && !there.empty() && !here.empty()) {
    for (const auto& [inner, value] : there.items()) {
      if (here.contains(inner)) AddDifference(absl::StrCat(key, ".", inner), value, here[inner], differences);
    }
  } else if (!IsSame(there, here)) {
    differences.push_back(absl::StrCat("\"", key, "\" is ", text(there), ", but ", text(here), " in the plan"));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DifferencesOfConfig(const fbs::Plan& plan, const std::string& directory) {
  std::vector<std::string> differences;
  const bool is_gguf = IsGgufPath(directory);
  const std::string path = is_gguf ? directory : absl::StrCat(directory, "/config.json");
  const absl::string_view attached = AttachedConfig(plan), keys = AttachmentOf(plan, kFunctionKeysAttachment);
  std::error_code ignored;
  if (attached.empty() || keys.empty() || !std::filesystem::exists(path, ignored)) return differences;
  BOWLINE_ASSIGN_OR_RETURN(const json compared, ParseAttachment(kFunctionKeysAttachment, keys));
  BOWLINE_ASSIGN_OR_RETURN(const json here, ParseAttachment(kConfigAttachment, attached));
  json read;
  if (is_gguf) {
    BOWLINE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(path));
    read = model.config();
  } else {
    BOWLINE_ASSIGN_OR_RETURN(read, ReadJsonFile(path, /*max_bytes=*/size_t{16} << 20));
  }
  if (!read.is_object()) return absl::InvalidArgumentError(absl::StrCat("'", path, "' should hold a JSON object"));
  const json own = Normalized(here, compared);
  const json others = Normalized(read, compared);
  for (const auto& [key, value] : others.items()) {
    if (own.contains(key)) AddDifference(key, value, own[key], differences);
  }
  return differences;
}

bool LacksConfig(const fbs::Plan& plan, const std::string& directory) {
  std::error_code ignored;
  return !AttachedConfig(plan).empty() && !std::filesystem::exists(absl::StrCat(directory, "/config.json"), ignored);
}

absl::Status RequireSameConfig(const fbs::Plan& plan, absl::string_view plan_name, const std::string& directory) {
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<std::string> differences, DifferencesOfConfig(plan, directory));
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("'", directory, IsGgufPath(directory) ? "" : "/config.json",
                                                    "' describes another model than '", plan_name,
                                                    "' was compiled from: ", absl::StrJoin(differences, "; "),
                                                    ". Compile the plan from the config.json of these weights"));
}

}  // namespace bowline
