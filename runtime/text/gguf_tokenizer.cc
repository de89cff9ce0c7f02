#include "runtime/text/gguf_tokenizer.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/gguf_model.h"
#include "runtime/text/tokenizer_json.h"

namespace bowline {
namespace {

constexpr char kPrefix[] = "tokenizer.ggml.";

absl::Status WrongKey(const GgufFile& file, const std::string& key, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("'", file.path(), "': the key '", key, "' is no ", expected));
}

// An array of a type; empty where the key is missing.
absl::StatusOr<const GgufFile::Value*> FindArray(const GgufFile& file, const std::string& key, GgufValueType type,
                                                 absl::string_view expected) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return nullptr;
  if (found->second.type == GgufValueType::kArray && found->second.element_type == type) return &found->second;
  return WrongKey(file, key, expected);
}

// Opening the file has checked the lengths.
absl::StatusOr<std::vector<std::string>> ReadTexts(const GgufFile& file, const std::string& key) {
  BOWLINE_ASSIGN_OR_RETURN(const GgufFile::Value* value,
                           FindArray(file, key, GgufValueType::kString, "array of strings"));
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  const uint8_t* at = value->bytes.data();
  for (uint64_t i = 0; i < value->count; ++i) {
    uint64_t length = 0;
    std::memcpy(&length, at, sizeof(length));
    at += sizeof(length);
    texts.emplace_back(reinterpret_cast<const char*>(at), length);
    at += length;
  }
  return texts;
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadNumbers(const GgufFile& file, const std::string& key, GgufValueType type,
                                           absl::string_view expected) {
  BOWLINE_ASSIGN_OR_RETURN(const GgufFile::Value* value, FindArray(file, key, type, expected));
  std::vector<T> numbers;
  if (value == nullptr) return numbers;
  numbers.resize(value->count);
  if (value->count > 0) std::memcpy(numbers.data(), value->bytes.data(), value->count * sizeof(T));
  return numbers;
}

// -1 where the key is missing.
absl::StatusOr<int32_t> ReadId(const GgufFile& file, const std::string& key) {
  if (!file.Has(key)) return -1;
  BOWLINE_ASSIGN_OR_RETURN(const int64_t id, file.Integer(key));
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) return WrongKey(file, key, "id of a token");
  return static_cast<int32_t>(id);
}

absl::StatusOr<bool> ReadBool(const GgufFile& file, const std::string& key, bool missing) {
  return file.Has(key) ? file.Boolean(key) : missing;
}

}  // namespace

absl::StatusOr<TokenizerParts> ReadTokenizerParts(const GgufFile& file) {
  const auto key = [](absl::string_view name) { return absl::StrCat(kPrefix, name); };
  TokenizerParts parts;
  BOWLINE_ASSIGN_OR_RETURN(const absl::string_view model, file.String(key("model")));
  parts.model = std::string(model);
  if (file.Has(key("pre"))) {
    BOWLINE_ASSIGN_OR_RETURN(const absl::string_view pre, file.String(key("pre")));
    parts.pre_tokenizer = std::string(pre);
  }
  BOWLINE_ASSIGN_OR_RETURN(parts.tokens, ReadTexts(file, key("tokens")));
  if (parts.tokens.empty()) return WrongKey(file, key("tokens"), "array of strings with at least one");
  BOWLINE_ASSIGN_OR_RETURN(parts.scores, ReadNumbers<float>(file, key("scores"), GgufValueType::kF32, "array of f32"));
  BOWLINE_ASSIGN_OR_RETURN(parts.types,
                           ReadNumbers<int32_t>(file, key("token_type"), GgufValueType::kI32, "array of i32"));
  BOWLINE_ASSIGN_OR_RETURN(parts.merges, ReadTexts(file, key("merges")));
  BOWLINE_ASSIGN_OR_RETURN(parts.begin, ReadId(file, key("bos_token_id")));
  BOWLINE_ASSIGN_OR_RETURN(parts.end, ReadId(file, key("eos_token_id")));
  BOWLINE_ASSIGN_OR_RETURN(parts.pad, ReadId(file, key("padding_token_id")));
  BOWLINE_ASSIGN_OR_RETURN(parts.unknown, ReadId(file, key("unknown_token_id")));
  BOWLINE_ASSIGN_OR_RETURN(parts.add_begin, ReadBool(file, key("add_bos_token"), parts.model == "llama"));
  BOWLINE_ASSIGN_OR_RETURN(parts.add_end, ReadBool(file, key("add_eos_token"), false));
  BOWLINE_ASSIGN_OR_RETURN(parts.add_space_prefix, ReadBool(file, key("add_space_prefix"), true));
  return parts;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenGgufTokenizer(const GgufFile& file) {
  BOWLINE_ASSIGN_OR_RETURN(TokenizerParts parts, ReadTokenizerParts(file));
  auto tokenizer = MakeTokenizer(std::move(parts));
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), absl::StrCat("'", file.path(), "'"));
  return tokenizer;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenModelTokenizer(const std::string& path) {
  if (!IsGgufPath(path)) return OpenTokenizer(path);
  BOWLINE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  return OpenGgufTokenizer(file);
}

}  // namespace bowline
