#include "runtime/serve/model_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/gguf.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/text/gguf_tokenizer.h"
#include "runtime/text/tokenizer_json.h"

namespace bowline::serve {
namespace {

constexpr size_t kMostTemplateBytes = size_t{1} << 20;

// Tokens by which families end a turn, whatever else a file says of the end.
constexpr const char* kEndsOfTurns[] = {"<|im_end|>", "<|eot_id|>", "<|end|>", "<|eom_id|>"};

void AddEnd(ModelFiles& files, int32_t id) {
  if (id < 0 || std::find(files.end_tokens.begin(), files.end_tokens.end(), id) != files.end_tokens.end()) return;
  files.end_tokens.push_back(id);
}

void AddEnds(ModelFiles& files) {
  AddEnd(files, files.tokenizer->end_token());
  for (const char* text : kEndsOfTurns) {
    const int32_t id = files.tokenizer->Find(text);
    if (id >= 0 && files.tokenizer->IsSpecial(id)) AddEnd(files, id);
  }
  files.begin_text = std::string(files.tokenizer->token(files.tokenizer->begin_token()));
  files.end_text = std::string(files.tokenizer->token(files.tokenizer->end_token()));
}

absl::StatusOr<ModelFiles> OpenGguf(const std::string& path) {
  ModelFiles files;
  BOWLINE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  BOWLINE_ASSIGN_OR_RETURN(files.tokenizer, OpenGgufTokenizer(file));
  if (file.Has("tokenizer.chat_template")) {
    BOWLINE_ASSIGN_OR_RETURN(const absl::string_view text, file.String("tokenizer.chat_template"));
    if (text.size() > kMostTemplateBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "': the chat template has more than ", kMostTemplateBytes, " bytes"));
    }
    files.chat_template = std::string(text);
    files.template_name = absl::StrCat("'tokenizer.chat_template' of '", path, "'");
  }
  files.name = std::filesystem::path(path).stem().string();
  AddEnds(files);
  return files;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// A file that is not there is an empty object.
absl::StatusOr<nlohmann::json> ReadObject(const std::string& path) {
  if (!Exists(path)) return nlohmann::json::object();
  BOWLINE_ASSIGN_OR_RETURN(nlohmann::json json, ReadJsonFile(path));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat("'", path, "' should hold a JSON object"));
  return json;
}

// The ids of eos_token_id, which is a number or an array of them.
absl::Status ReadEnds(const std::string& path, const nlohmann::json& json, ModelFiles& files) {
  if (!json.contains("eos_token_id") || json["eos_token_id"].is_null()) return absl::OkStatus();
  const nlohmann::json& value = json["eos_token_id"];
  const std::vector<nlohmann::json> ids =
      value.is_array() ? value.get<std::vector<nlohmann::json>>() : std::vector<nlohmann::json>{value};
  const auto size = static_cast<uint64_t>(files.tokenizer->vocabulary_size());
  for (const nlohmann::json& id : ids) {
    // A number without a sign is one that is not negative.
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "': eos_token_id is neither an id of the vocabulary nor an array of them"));
    }
    AddEnd(files, id.get<int32_t>());
  }
  return absl::OkStatus();
}

absl::Status ReadTemplate(const std::string& directory, ModelFiles& files) {
  if (const std::string path = directory + "/chat_template.jinja"; Exists(path)) {
    BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    const absl::Span<const uint8_t> bytes = file.bytes();
    if (bytes.size() > kMostTemplateBytes) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' has more than ", kMostTemplateBytes, " bytes"));
    }
    files.chat_template.assign(bytes.begin(), bytes.end());
    files.template_name = absl::StrCat("'", path, "'");
    return absl::OkStatus();
  }
  const std::string path = directory + "/tokenizer_config.json";
  if (!Exists(path)) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(path));
  if (!json.is_object() || !json.contains("chat_template")) return absl::OkStatus();
  files.template_name = absl::StrCat("'chat_template' of '", path, "'");
  // A text, or an array of named ones, of which "default" is meant.
  const nlohmann::json& value = json["chat_template"];
  if (value.is_string()) files.chat_template = value.get<std::string>();
  if (!value.is_array()) return absl::OkStatus();
  for (const nlohmann::json& each : value) {
    const bool is_default = each.is_object() && each.value("name", nlohmann::json()) == "default" &&
                            each.contains("template") && each["template"].is_string();
    if (is_default) files.chat_template = each["template"].get<std::string>();
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelFiles> OpenDirectory(const std::string& directory) {
  ModelFiles files;
  BOWLINE_ASSIGN_OR_RETURN(files.tokenizer, OpenTokenizer(directory));
  for (const char* name : {"/generation_config.json", "/config.json"}) {
    const std::string path = directory + name;
    BOWLINE_ASSIGN_OR_RETURN(const nlohmann::json json, ReadObject(path));
    BOWLINE_RETURN_IF_ERROR(ReadEnds(path, json, files));
  }
  const std::string path = directory + "/generation_config.json";
  BOWLINE_ASSIGN_OR_RETURN(const nlohmann::json generation, ReadObject(path));
  BOWLINE_ASSIGN_OR_RETURN(files.defaults, ReadGenerationDefaults(generation, path));
  BOWLINE_RETURN_IF_ERROR(ReadTemplate(directory, files));
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::canonical(directory, ignored);
  files.name = (whole.empty() ? std::filesystem::path(directory) : whole).filename().string();
  AddEnds(files);
  return files;
}

}  // namespace

absl::StatusOr<GenerationDefaults> ReadGenerationDefaults(const nlohmann::json& config, const std::string& path) {
  GenerationDefaults defaults;
  const auto find = [&](const char* key) -> const nlohmann::json* {
    const auto found = config.find(key);
    return found == config.end() || found->is_null() ? nullptr : &*found;
  };
  const auto refuse = [&](const char* key, absl::string_view expected) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': \"", key, "\" should be ", expected));
  };
  if (const nlohmann::json* value = find("do_sample")) {
    if (!value->is_boolean()) return refuse("do_sample", "true or false");
    defaults.do_sample = value->get<bool>();
  }
  if (const nlohmann::json* value = find("temperature")) {
    if (!value->is_number() || !(value->get<double>() >= 0)) return refuse("temperature", "a number of at least 0");
    defaults.temperature = value->get<double>();
  }
  if (const nlohmann::json* value = find("top_p")) {
    if (!value->is_number() || !(value->get<double>() > 0 && value->get<double>() <= 1)) {
      return refuse("top_p", "a number above 0 and of at most 1");
    }
    defaults.top_p = value->get<double>();
  }
  constexpr uint64_t kMost = uint64_t{1} << 30;
  const auto is_count = [&](const nlohmann::json& value, uint64_t least) {
    return value.is_number_unsigned() && value.get<uint64_t>() >= least && value.get<uint64_t>() <= kMost;
  };
  if (const nlohmann::json* value = find("top_k")) {
    if (!is_count(*value, 0)) return refuse("top_k", absl::StrCat("an integer from 0 to ", kMost));
    defaults.top_k = value->get<int64_t>();
  }
  if (const nlohmann::json* value = find("max_new_tokens")) {
    if (!is_count(*value, 1)) return refuse("max_new_tokens", absl::StrCat("an integer from 1 to ", kMost));
    defaults.max_new_tokens = value->get<int64_t>();
  }
  return defaults;
}

absl::StatusOr<ModelFiles> OpenModelFiles(const std::string& path) {
  return IsGgufPath(path) ? OpenGguf(path) : OpenDirectory(path);
}

}  // namespace bowline::serve
