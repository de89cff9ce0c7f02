#include "runtime/text/tokenizer_json.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/text/json_object.h"

namespace bowline {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

// The list `tokens`, with `token` at `id`.
absl::Status SetToken(const std::string& token, int64_t id, std::vector<std::string>* tokens) {
  if (id < 0 || static_cast<size_t>(id) >= Vocabulary::kMaxTokens) {
    return absl::InvalidArgumentError(absl::StrCat("the token '", absl::Utf8SafeCEscape(token), "' has the id ", id,
                                                   "; ids are below ", Vocabulary::kMaxTokens));
  }
  if (static_cast<size_t>(id) >= tokens->size()) tokens->resize(static_cast<size_t>(id) + 1);
  std::string& place = (*tokens)[static_cast<size_t>(id)];
  if (!place.empty() && place != token) {
    return absl::InvalidArgumentError(absl::StrCat("the tokens '", absl::Utf8SafeCEscape(place), "' and '",
                                                   absl::Utf8SafeCEscape(token), "' have the same id ", id));
  }
  place = token;
  return absl::OkStatus();
}

absl::Status ReadVocabulary(JsonObject& model, std::vector<std::string>* tokens) {
  const nlohmann::json* const vocabulary = model.Find("vocab");
  if (vocabulary == nullptr || !vocabulary->is_object()) {
    model.Fail("has no object 'vocab'");
    return absl::OkStatus();
  }
  for (const auto& [token, id] : vocabulary->items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
      model.Fail(absl::StrCat("has a 'vocab' whose token '", absl::Utf8SafeCEscape(token), "' has no id"));
      return absl::OkStatus();
    }
    if (token.empty()) {
      model.Fail("has a 'vocab' with an empty token");
      return absl::OkStatus();
    }
    if (const absl::Status set = SetToken(token, id.get<int64_t>(), tokens); !set.ok()) {
      model.Fail(absl::StrCat("has a wrong 'vocab': ", set.message()));
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// "a b" or ["a", "b"].
void ReadMerges(JsonObject& model, BpeDefinition* bpe) {
  const nlohmann::json* const merges = model.Find("merges");
  if (merges == nullptr || !merges->is_array()) return model.Fail("has no list 'merges'");
  bpe->merges.reserve(merges->size());
  for (size_t i = 0; i < merges->size(); ++i) {
    const nlohmann::json& merge = (*merges)[i];
    if (const auto* text = merge.get_ptr<const std::string*>()) {
      const size_t space = text->find(' ');
      if (space != std::string::npos && text->find(' ', space + 1) == std::string::npos) {
        bpe->merges.emplace_back(text->substr(0, space), text->substr(space + 1));
        continue;
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      bpe->merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    return model.Fail(absl::StrCat("has a merge ", i, " that is not two tokens"));
  }
}

absl::Status ReadModel(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition) {
  JsonObject model(value, where);
  // Old files of BPE have no type.
  const std::string type = model.String("type", "BPE");
  if (type != "BPE") {
    model.Fail(absl::StrCat("is of type '", type, "', which is not supported; BPE is"));
    return model.Finish();
  }
  model.RefuseUnlessEmpty("dropout");
  model.RefuseUnlessEmpty("continuing_subword_prefix");
  model.RefuseUnlessEmpty("end_of_word_suffix");
  BpeDefinition bpe;
  bpe.byte_fallback = model.Bool("byte_fallback", false);
  bpe.fuse_unknown = model.Bool("fuse_unk", false);
  bpe.ignore_merges = model.Bool("ignore_merges", false);
  const std::string unknown = model.String("unk_token", "");
  BOWLINE_RETURN_IF_ERROR(ReadVocabulary(model, &definition->tokens));
  ReadMerges(model, &bpe);
  BOWLINE_RETURN_IF_ERROR(model.Finish());
  if (!unknown.empty()) {
    for (size_t id = 0; id < definition->tokens.size() && bpe.unknown < 0; ++id) {
      if (definition->tokens[id] == unknown) bpe.unknown = static_cast<int32_t>(id);
    }
    if (bpe.unknown < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " has the unk_token '", absl::Utf8SafeCEscape(unknown), "', which its vocab lacks"));
    }
  }
  definition->model = std::move(bpe);
  return absl::OkStatus();
}

absl::Status ReadAddedTokens(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition) {
  if (!value.is_array()) return absl::InvalidArgumentError(absl::StrCat(where, " is no list"));
  for (size_t i = 0; i < value.size(); ++i) {
    JsonObject object(value[i], absl::StrCat(where, "[", i, "]"));
    AddedToken token;
    token.id = object.Number("id");
    token.content = object.RequiredString("content");
    token.special = object.Bool("special", false);
    token.single_word = object.Bool("single_word", false);
    token.left_strip = object.Bool("lstrip", false);
    token.right_strip = object.Bool("rstrip", false);
    token.normalized = object.Bool("normalized", !token.special);
    if (token.content.empty()) object.Fail("has no content");
    BOWLINE_RETURN_IF_ERROR(object.Finish());
    BOWLINE_RETURN_IF_ERROR(Annotate(SetToken(token.content, token.id, &definition->tokens), where));
    definition->added.push_back(std::move(token));
  }
  return absl::OkStatus();
}

// "token", or {"content": "token", ...}, or null.
absl::StatusOr<int32_t> FindSpecial(const nlohmann::json& config, const std::string& key, const std::string& path,
                                    const TokenizerDefinition& definition) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return -1;
  const nlohmann::json* token = &*found;
  if (token->is_object() && token->contains("content")) token = &(*token)["content"];
  if (!token->is_string()) return absl::InvalidArgumentError(absl::StrCat(path, ": '", key, "' names no token"));
  const auto& name = token->get_ref<const std::string&>();
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    if (!name.empty() && definition.tokens[id] == name) return static_cast<int32_t>(id);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": '", key, "' is '", absl::Utf8SafeCEscape(name), "', which tokenizer.json lacks"));
}

// Adds the tokens that `file` of `directory` names and no file before did. A missing file says nothing.
absl::Status ReadNames(const std::string& directory, absl::string_view file, TokenizerDefinition* definition) {
  const std::string path = absl::StrCat(directory, "/", file);
  const absl::StatusOr<nlohmann::json> config = ReadJsonFile(path);
  if (absl::IsNotFound(config.status())) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(config.status());
  if (!config->is_object()) return absl::InvalidArgumentError(absl::StrCat(path, ": is no object"));
  for (const auto& [key, id] : {std::pair("bos_token", &definition->begin), std::pair("eos_token", &definition->end),
                                std::pair("pad_token", &definition->pad)}) {
    if (*id >= 0) continue;
    BOWLINE_ASSIGN_OR_RETURN(*id, FindSpecial(*config, key, path, *definition));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerDefinition> ParseTokenizerJson(absl::string_view text, absl::string_view what) {
  BOWLINE_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, what));
  const std::string name(what);
  JsonObject file(root, absl::StrCat(name, ":"));
  file.Ignore("version");
  file.RefuseUnlessEmpty("truncation");
  file.RefuseUnlessEmpty("padding");
  const nlohmann::json* const model = file.Find("model");
  const nlohmann::json* const added = file.Find("added_tokens");
  const nlohmann::json* const normalizer = file.Find("normalizer");
  const nlohmann::json* const pre_tokenizer = file.Find("pre_tokenizer");
  const nlohmann::json* const post_processor = file.Find("post_processor");
  const nlohmann::json* const decoder = file.Find("decoder");
  if (model == nullptr) file.Fail("has no 'model'");
  if (decoder == nullptr) file.Fail("has no 'decoder'");
  BOWLINE_RETURN_IF_ERROR(file.Finish());
  TokenizerDefinition definition;
  const auto where = [&](absl::string_view key) { return absl::StrCat(name, ": ", key); };
  BOWLINE_RETURN_IF_ERROR(ReadModel(*model, where("model"), &definition));
  if (added != nullptr) BOWLINE_RETURN_IF_ERROR(ReadAddedTokens(*added, where("added_tokens"), &definition));
  if (normalizer != nullptr) BOWLINE_RETURN_IF_ERROR(ReadNormalizer(*normalizer, where("normalizer"), &definition));
  if (pre_tokenizer != nullptr) {
    BOWLINE_RETURN_IF_ERROR(ReadPreTokenizer(*pre_tokenizer, where("pre_tokenizer"), &definition));
  }
  if (post_processor != nullptr) {
    BOWLINE_RETURN_IF_ERROR(ReadPostProcessor(*post_processor, where("post_processor"), &definition));
  }
  BOWLINE_RETURN_IF_ERROR(ReadDecoder(*decoder, where("decoder"), &definition));
  return definition;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& directory) {
  const std::string path = directory + "/tokenizer.json";
  std::error_code ignored;
  if (std::filesystem::is_regular_file(directory, ignored)) {
    BOWLINE_RETURN_IF_ERROR(MappedFile::Open(directory).status());  // which names a file that stands for another
    return absl::InvalidArgumentError(
        absl::StrCat("'", directory, "' is no tokenizer; give the directory that has its tokenizer.json, or a *.gguf"));
  }
  if (!std::filesystem::exists(path, ignored) && std::filesystem::exists(directory + "/tokenizer.model", ignored)) {
    return absl::NotFoundError(absl::StrCat(
        "'", directory,
        "' has a tokenizer.model, which is not supported, and no tokenizer.json; the package transformers makes that: ",
        "AutoTokenizer.from_pretrained(DIRECTORY).save_pretrained(DIRECTORY)"));
  }
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", file.bytes().size(), " bytes; the limit is ", kMaxFileBytes));
  }
  const absl::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  BOWLINE_ASSIGN_OR_RETURN(TokenizerDefinition definition, ParseTokenizerJson(text, path));
  for (const char* names : {"tokenizer_config.json", "special_tokens_map.json"}) {
    BOWLINE_RETURN_IF_ERROR(ReadNames(directory, names, &definition));
  }
  auto tokenizer = Tokenizer::Create(std::move(definition));
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), path);
  return tokenizer;
}

}  // namespace bowline
