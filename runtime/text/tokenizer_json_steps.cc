// Normalizer, pre-tokenizer, post-processor and decoder of tokenizer.json.

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "runtime/base/json.h"
#include "runtime/text/families.h"
#include "runtime/text/json_object.h"
#include "runtime/text/tokenizer_json.h"

namespace bowline {
namespace {

using Reader = absl::Status (*)(const nlohmann::json&, const std::string&, TokenizerDefinition*);

// Each element of the list `key` of a Sequence.
absl::Status ReadSequence(JsonObject& object, const std::string& key, Reader read, TokenizerDefinition* definition) {
  const nlohmann::json* const list = object.Find(key);
  if (list == nullptr || !list->is_array()) {
    object.Fail(absl::StrCat("has no list '", key, "'"));
    return object.Finish();
  }
  BOWLINE_RETURN_IF_ERROR(object.Finish());
  for (size_t i = 0; i < list->size(); ++i) {
    BOWLINE_RETURN_IF_ERROR(read((*list)[i], absl::StrCat(object.Where(key), "[", i, "]"), definition));
  }
  return absl::OkStatus();
}

absl::Status UnknownType(JsonObject& object, absl::string_view type) {
  object.Fail(absl::StrCat("is of type '", type, "', which is not supported"));
  return object.Finish();
}

// An expression that matches `text` as it is.
std::string Quote(absl::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (absl::ascii_ispunct(static_cast<unsigned char>(c))) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

// {"String": s} or {"Regex": r}.
std::string ReadPattern(JsonObject& object, bool* is_expression) {
  const nlohmann::json* const pattern = object.Find("pattern");
  *is_expression = false;
  if (pattern != nullptr && pattern->is_object() && pattern->size() == 1) {
    const auto one = pattern->begin();
    if (one->is_string() && (one.key() == "String" || one.key() == "Regex") && *one != "") {
      *is_expression = one.key() == "Regex";
      return one->get<std::string>();
    }
  }
  object.Fail("has no 'pattern' that is {\"String\": ...} or {\"Regex\": ...}");
  return "";
}

SplitBehavior ReadBehavior(JsonObject& object, absl::string_view otherwise) {
  const std::string name = object.String("behavior", otherwise);
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  object.Fail(absl::StrCat("has the behavior '", name, "', which is not supported"));
  return SplitBehavior::kIsolated;
}

PreTokenizerStep Split(std::string expression, SplitBehavior behavior) {
  PreTokenizerStep step;
  step.expression = std::move(expression);
  step.behavior = behavior;
  return step;
}

PreTokenizerStep::Where ReadPrependScheme(JsonObject& object) {
  // Older files have add_prefix_space.
  const bool prefix = object.Bool("add_prefix_space", true);
  const std::string scheme = object.String("prepend_scheme", prefix ? "always" : "never");
  if (scheme == "first") return PreTokenizerStep::Where::kFirst;
  if (scheme == "never") return PreTokenizerStep::Where::kNever;
  if (scheme != "always") object.Fail(absl::StrCat("has the prepend_scheme '", scheme, "', which is not supported"));
  return PreTokenizerStep::Where::kAlways;
}

// Tokens before and behind the text, of one text.
absl::Status ReadTemplate(JsonObject& object, TokenizerDefinition* definition) {
  object.Ignore("pair");
  absl::flat_hash_map<std::string, std::vector<int32_t>> special;
  if (const nlohmann::json* const tokens = object.Find("special_tokens"); tokens != nullptr && tokens->is_object()) {
    for (const auto& [name, token] : tokens->items()) {
      JsonObject one(token, absl::StrCat(object.Where("special_tokens"), ".", name));
      one.Ignore("id");
      one.Ignore("tokens");
      const nlohmann::json* const ids = one.Find("ids");
      if (ids == nullptr || !ids->is_array()) {
        one.Fail("has no list 'ids'");
      } else {
        for (const nlohmann::json& id : *ids) {
          if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
            one.Fail("has an id that is no id");
            break;
          }
          special[name].push_back(id.get<int32_t>());
        }
      }
      BOWLINE_RETURN_IF_ERROR(one.Finish());
    }
  }
  const nlohmann::json* const single = object.Find("single");
  if (single == nullptr || !single->is_array()) object.Fail("has no list 'single'");
  BOWLINE_RETURN_IF_ERROR(object.Finish());
  bool behind = false;
  for (size_t i = 0; i < single->size(); ++i) {
    JsonObject part((*single)[i], absl::StrCat(object.Where("single"), "[", i, "]"));
    const nlohmann::json* const text = part.Find("Sequence");
    const nlohmann::json* const token = part.Find("SpecialToken");
    const nlohmann::json* const either = text != nullptr ? text : token;
    if (either == nullptr || (text != nullptr && (token != nullptr || behind))) {
      part.Fail("is neither a SpecialToken nor the only Sequence");
      return part.Finish();
    }
    JsonObject inner(*either, part.Where(text != nullptr ? "Sequence" : "SpecialToken"));
    inner.Ignore("type_id");
    const std::string id = inner.RequiredString("id");
    if (text != nullptr) {
      if (id != "A") inner.Fail(absl::StrCat("has the id '", id, "', not A"));
      behind = true;
    } else if (const auto found = special.find(id); found == special.end()) {
      inner.Fail(absl::StrCat("names '", id, "', which special_tokens lacks"));
    } else {
      auto& list = behind ? definition->suffix : definition->prefix;
      list.insert(list.end(), found->second.begin(), found->second.end());
    }
    BOWLINE_RETURN_IF_ERROR(inner.Finish());
    BOWLINE_RETURN_IF_ERROR(part.Finish());
  }
  if (!behind) {
    return absl::InvalidArgumentError(absl::StrCat(object.Where("single"), " has no Sequence"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadNormalizer(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition) {
  if (value.is_null()) return absl::OkStatus();
  JsonObject object(value, where);
  const std::string type = object.RequiredString("type");
  if (type == "Sequence") return ReadSequence(object, "normalizers", &ReadNormalizer, definition);
  NormalizerStep step;
  if (type == "NFC") {
    step.kind = NormalizerStep::Kind::kNfc;
  } else if (type == "NFD") {
    step.kind = NormalizerStep::Kind::kNfd;
  } else if (type == "NFKC") {
    step.kind = NormalizerStep::Kind::kNfkc;
  } else if (type == "NFKD") {
    step.kind = NormalizerStep::Kind::kNfkd;
  } else if (type == "Prepend") {
    step = {NormalizerStep::Kind::kPrepend, "", object.RequiredString("prepend")};
  } else if (type == "Replace") {
    bool is_expression = false;
    step = {NormalizerStep::Kind::kReplace, ReadPattern(object, &is_expression), object.RequiredString("content")};
    if (is_expression) object.Fail("replaces a Regex, which is not supported");
  } else {
    return UnknownType(object, type);
  }
  definition->normalizer.push_back(std::move(step));
  return object.Finish();
}

absl::Status ReadPreTokenizer(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition) {
  if (value.is_null()) return absl::OkStatus();
  JsonObject object(value, where);
  const std::string type = object.RequiredString("type");
  if (type == "Sequence") return ReadSequence(object, "pretokenizers", &ReadPreTokenizer, definition);
  std::vector<PreTokenizerStep>& steps = definition->pre_tokenizer;
  if (type == "ByteLevel") {
    object.Ignore("trim_offsets");
    if (object.Bool("add_prefix_space", true)) {
      PreTokenizerStep prefix;
      prefix.kind = PreTokenizerStep::Kind::kPrefix;
      prefix.content = " ";
      steps.push_back(prefix);
    }
    if (object.Bool("use_regex", true)) steps.push_back(Split(kGpt2Expression, SplitBehavior::kIsolated));
    PreTokenizerStep bytes;
    bytes.kind = PreTokenizerStep::Kind::kByteLevel;
    steps.push_back(bytes);
  } else if (type == "Split") {
    bool is_expression = false;
    const std::string pattern = ReadPattern(object, &is_expression);
    if (object.Find("behavior") == nullptr) object.Fail("has no 'behavior'");
    PreTokenizerStep step = Split(is_expression ? pattern : Quote(pattern), ReadBehavior(object, "Isolated"));
    step.invert = object.Bool("invert", false);
    steps.push_back(std::move(step));
  } else if (type == "Digits") {
    const bool individual = object.Bool("individual_digits", false);
    steps.push_back(Split(kDigit, individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous));
  } else if (type == "Whitespace") {
    // Word characters are those of Unicode, with joiners, and no superscripts as in \w of a Split.
    static constexpr char kWord[] =
        R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
    PreTokenizerStep step = Split(absl::StrCat("[", kWord, "]+|[^\\s", kWord, "]+"), SplitBehavior::kRemoved);
    step.invert = true;
    steps.push_back(std::move(step));
  } else if (type == "WhitespaceSplit") {
    steps.push_back(Split(R"(\s)", SplitBehavior::kRemoved));
  } else if (type == "Metaspace") {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::kMetaspace;
    step.content = object.RequiredString("replacement");
    object.Ignore("str_rep");
    step.where = ReadPrependScheme(object);
    steps.push_back(step);
    if (object.Bool("split", true)) steps.push_back(Split(Quote(step.content), SplitBehavior::kMergedWithNext));
  } else {
    return UnknownType(object, type);
  }
  return object.Finish();
}

absl::Status ReadPostProcessor(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition) {
  if (value.is_null()) return absl::OkStatus();
  JsonObject object(value, where);
  const std::string type = object.RequiredString("type");
  if (type == "Sequence") return ReadSequence(object, "processors", &ReadPostProcessor, definition);
  if (type == "TemplateProcessing") {
    if (!definition->prefix.empty() || !definition->suffix.empty()) object.Fail("is the second template");
    return ReadTemplate(object, definition);
  }
  // It moves offsets into the text alone.
  if (type != "ByteLevel") return UnknownType(object, type);
  for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) object.Ignore(key);
  return object.Finish();
}

absl::Status ReadDecoder(const nlohmann::json& value, const std::string& where, TokenizerDefinition* definition) {
  JsonObject object(value, where);
  const std::string type = object.RequiredString("type");
  if (type == "Sequence") return ReadSequence(object, "decoders", &ReadDecoder, definition);
  std::vector<DecoderStep>& steps = definition->decoder;
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) object.Ignore(key);
    steps.push_back({DecoderStep::Kind::kByteLevel, "", ""});
  } else if (type == "ByteFallback") {
    steps.push_back({DecoderStep::Kind::kByteFallback, "", ""});
  } else if (type == "Replace") {
    bool is_expression = false;
    DecoderStep step{DecoderStep::Kind::kReplace, ReadPattern(object, &is_expression),
                     object.RequiredString("content")};
    if (is_expression) object.Fail("replaces a Regex, which is not supported");
    steps.push_back(std::move(step));
  } else if (type == "Metaspace") {
    DecoderStep step{DecoderStep::Kind::kMetaspace, object.RequiredString("replacement"), ""};
    object.Ignore("str_rep");
    object.Bool("split", true);
    step.strip_first = ReadPrependScheme(object) != PreTokenizerStep::Where::kNever;
    steps.push_back(std::move(step));
  } else if (type == "Strip") {
    DecoderStep step{DecoderStep::Kind::kStripStart, "", "", object.Number("start")};
    if (object.RequiredString("content") != " ")
      object.Fail("strips something else than spaces, which is not supported");
    if (object.Number("stop") != 0) object.Fail("strips the end, which is not supported");
    steps.push_back(std::move(step));
  } else if (type != "Fuse") {
    return UnknownType(object, type);
  }
  return object.Finish();
}

}  // namespace bowline
