#include "runtime/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "runtime/text/bpe_model.h"
#include "runtime/text/byte_alphabet.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/score_model.h"
#include "runtime/text/utf8.h"

namespace bowline {
namespace {

constexpr size_t kMaxTextBytes = (size_t{1} << 30) - 1;
// Most pieces of a text are words that it has many times.
constexpr size_t kMaxCachedPieces = size_t{1} << 16;
constexpr size_t kMaxCachedPieceBytes = 64;

// Removes `*count` spaces at the beginning of `text`, or as many as there are.
void StripSpaces(std::string* text, int* count) {
  size_t size = 0;
  while (size < text->size() && *count > 0) {
    if ((*text)[size] != ' ') {
      *count = 0;
      break;
    }
    ++size;
    --*count;
  }
  text->erase(0, size);
}

// Refuses steps by which a hostile file would make a short text long: each step could lengthen the output of the last.
absl::Status CheckSteps(const TokenizerDefinition& definition) {
  constexpr size_t kMaxSteps = 16;
  constexpr size_t kMaxContentBytes = 64;
  constexpr size_t kMaxAddedBytes = 1024;
  const auto check_content = [](absl::string_view content) {
    if (content.size() <= kMaxContentBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("a step of the tokenizer inserts ", content.size(), " bytes; the limit is ", kMaxContentBytes));
  };
  if (definition.normalizer.size() > kMaxSteps || definition.decoder.size() > kMaxSteps) {
    return absl::InvalidArgumentError(absl::StrCat("the normalizer has ", definition.normalizer.size(),
                                                   " steps and the decoder ", definition.decoder.size(),
                                                   "; the limit is ", kMaxSteps));
  }
  for (const NormalizerStep& step : definition.normalizer) BOWLINE_RETURN_IF_ERROR(check_content(step.content));
  int byte_levels = 0, growing = 0;
  for (const PreTokenizerStep& step : definition.pre_tokenizer) {
    BOWLINE_RETURN_IF_ERROR(check_content(step.content));
    byte_levels += step.kind == PreTokenizerStep::Kind::kByteLevel;
    if (step.kind == PreTokenizerStep::Kind::kMetaspace && absl::StrContains(step.content, ' ')) {
      return absl::InvalidArgumentError("the replacement of Metaspace has a space");
    }
  }
  for (const DecoderStep& step : definition.decoder) {
    BOWLINE_RETURN_IF_ERROR(check_content(step.content));
    growing += step.content.size() > step.pattern.size();
  }
  if (byte_levels > 1) return absl::InvalidArgumentError("the pre-tokenizer has ByteLevel twice");
  if (growing > 2) return absl::InvalidArgumentError("the decoder has more than two steps that make texts longer");
  for (const AddedToken& token : definition.added) {
    if (token.content.size() > kMaxAddedBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the added token ", token.id, " has ", token.content.size(),
                                                     " bytes; the limit is ", kMaxAddedBytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct Tokenizer::Encoding {
  bool parse_special;
  size_t most;
  std::vector<int32_t> ids;
  absl::flat_hash_map<std::string, std::vector<int32_t>> pieces;

  void AddPiece(const PieceModel& model, absl::string_view piece) {
    if (piece.size() > kMaxCachedPieceBytes) return model.Encode(piece, &ids);
    auto cached = pieces.find(piece);
    if (cached == pieces.end()) {
      if (pieces.size() >= kMaxCachedPieces) pieces.clear();
      cached = pieces.try_emplace(std::string(piece)).first;
      model.Encode(piece, &cached->second);
    }
    ids.insert(ids.end(), cached->second.begin(), cached->second.end());
  }

  absl::Status TooLong() const {
    return absl::OutOfRangeError(absl::StrCat("the text has more than ", most, " tokens"));
  }
  absl::Status Check() const { return ids.size() <= most ? absl::OkStatus() : TooLong(); }
};

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(TokenizerDefinition definition) {
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(definition)));
  TokenizerDefinition& own = tokenizer->definition_;
  BOWLINE_ASSIGN_OR_RETURN(tokenizer->vocabulary_, Vocabulary::Create(std::exchange(own.tokens, {})));
  BOWLINE_RETURN_IF_ERROR(tokenizer->CheckIds());
  BOWLINE_RETURN_IF_ERROR(CheckSteps(own));
  if (auto* bpe = std::get_if<BpeDefinition>(&own.model)) {
    BOWLINE_ASSIGN_OR_RETURN(tokenizer->model_, MakeBpeModel(*bpe, tokenizer->vocabulary_));
    bpe->merges = {};
  } else {
    const auto& scores = std::get<ScoreDefinition>(own.model);
    BOWLINE_ASSIGN_OR_RETURN(tokenizer->model_, MakeScoreModel(scores, tokenizer->vocabulary_));
  }
  BOWLINE_ASSIGN_OR_RETURN(tokenizer->pre_tokenizer_, PreTokenizer::Create(own.pre_tokenizer));
  BOWLINE_RETURN_IF_ERROR(tokenizer->AddAddedTokens());
  for (int32_t id = 0; id < tokenizer->vocabulary_size(); ++id) {
    tokenizer->longest_token_ = std::max(tokenizer->longest_token_, tokenizer->vocabulary_.token(id).size());
  }
  return tokenizer;
}

absl::Status Tokenizer::CheckIds() const {
  const auto check = [&](int32_t id, absl::string_view what) {
    if (id < vocabulary_size() && id >= -1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has the id ", id, ", which the vocabulary of ", vocabulary_size(), " does not have"));
  };
  BOWLINE_RETURN_IF_ERROR(check(definition_.begin, "the begin token"));
  BOWLINE_RETURN_IF_ERROR(check(definition_.end, "the end token"));
  BOWLINE_RETURN_IF_ERROR(check(definition_.pad, "the pad token"));
  for (const auto* list : {&definition_.prefix, &definition_.suffix}) {
    for (const int32_t id : *list) {
      BOWLINE_RETURN_IF_ERROR(check(id < 0 ? vocabulary_size() : id, "a token around texts"));
    }
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::AddAddedTokens() {
  special_.resize(vocabulary_.size());
  for (const AddedToken& token : definition_.added) {
    if (token.id < 0 || token.id >= vocabulary_size() || vocabulary_.token(token.id) != token.content) {
      return absl::InvalidArgumentError(absl::StrCat("the added token '", absl::Utf8SafeCEscape(token.content),
                                                     "' has the id ", token.id, ", which is of another token"));
    }
    if (FindInvalidUtf8(token.content) != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("the added token ", token.id, " is no UTF-8"));
    }
    if (token.special) special_[static_cast<size_t>(token.id)] = true;
    if (token.normalized) {
      BOWLINE_ASSIGN_OR_RETURN(const std::string content, Normalize(definition_.normalizer, token.content));
      normalized_added_.Add(content, token);
    } else {
      raw_added_.Add(token.content, token);
    }
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::CheckRoom(absl::string_view piece, const Encoding& encoding) const {
  BOWLINE_RETURN_IF_ERROR(encoding.Check());
  const size_t room = encoding.most - encoding.ids.size();
  if (piece.size() / longest_token_ <= room) return absl::OkStatus();
  size_t covered = 0;
  for (size_t at = 0; at < piece.size();) {
    const absl::string_view character = piece.substr(at, NextUtf8(piece.substr(at)).size);
    at += character.size();
    if (model_->Covers(character)) covered += character.size();
    if (covered / longest_token_ > room) return encoding.TooLong();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text, const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a text has ", text.size(), " bytes; the limit is ", kMaxTextBytes));
  }
  if (const size_t at = FindInvalidUtf8(text); at != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("the text is no UTF-8 at byte ", at));
  }
  Encoding encoding{options.parse_special, options.most, {}, {}};
  if (options.add_special) encoding.ids = definition_.prefix;
  BOWLINE_RETURN_IF_ERROR(
      raw_added_.Split(text, options.parse_special, [&](int32_t id, absl::string_view part) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(encoding.Check());
        if (id < 0) return EncodeSection(part, part.data() == text.data(), &encoding);
        encoding.ids.push_back(id);
        return absl::OkStatus();
      }));
  std::vector<int32_t>& ids = encoding.ids;
  if (options.one_begin && !ids.empty() && ids[0] == definition_.begin) {
    ids.erase(ids.begin() + 1,
              std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id != definition_.begin; }));
  }
  if (options.add_special) ids.insert(ids.end(), definition_.suffix.begin(), definition_.suffix.end());
  BOWLINE_RETURN_IF_ERROR(encoding.Check());
  return std::move(ids);
}

absl::Status Tokenizer::EncodeSection(absl::string_view section, bool at_start, Encoding* encoding) const {
  std::string normalized;
  if (!definition_.normalizer.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(normalized, Normalize(definition_.normalizer, section));
    section = normalized;
  }
  return normalized_added_.Split(
      section, encoding->parse_special, [&](int32_t id, absl::string_view part) -> absl::Status {
        if (id >= 0) {
          encoding->ids.push_back(id);
          return absl::OkStatus();
        }
        return pre_tokenizer_.Split(part, at_start && part.data() == section.data(), [&](absl::string_view piece) {
          BOWLINE_RETURN_IF_ERROR(CheckRoom(piece, *encoding));
          encoding->AddPiece(*model_, piece);
          return absl::OkStatus();
        });
      });
}

EncodeOptions PromptOptions(const Tokenizer& tokenizer, bool rendered) {
  return {.add_special = !rendered, .one_begin = rendered || tokenizer.adds_begin_token()};
}

bool Tokenizer::adds_begin_token() const {
  return definition_.begin >= 0 && !definition_.prefix.empty() && definition_.prefix[0] == definition_.begin;
}

absl::string_view Tokenizer::token(int32_t id) const {
  if (id < 0 || id >= vocabulary_size()) return "";
  return vocabulary_.token(id);
}

std::vector<std::string> Tokenizer::AddedContents() const {
  std::vector<std::string> contents;
  for (const AddedToken& token : definition_.added) contents.push_back(token.content);
  return contents;
}

std::string Tokenizer::Bytes(int32_t id) const {
  std::string bytes;
  AppendBytes(id, /*first=*/false, &bytes);
  return bytes;
}

bool Tokenizer::AppendBytes(int32_t id, bool first, std::string* bytes) const {
  std::string text(token(id));
  for (const DecoderStep& step : definition_.decoder) {
    switch (step.kind) {
      case DecoderStep::Kind::kByteLevel: {
        std::string decoded;
        AppendFromByteAlphabet(text, &decoded);
        text = std::move(decoded);
        break;
      }
      case DecoderStep::Kind::kReplace:
        text = absl::StrReplaceAll(text, {{step.pattern, step.content}});
        break;
      case DecoderStep::Kind::kByteFallback:
        if (const int byte = ByteOfToken(text); byte >= 0) {
          bytes->push_back(static_cast<char>(byte));
          return true;
        }
        break;
      case DecoderStep::Kind::kStripStart:
        break;  // of the whole text
      case DecoderStep::Kind::kMetaspace:
        text = absl::StrReplaceAll(text, {{step.pattern, first && step.strip_first ? "" : " "}});
        break;
    }
  }
  bytes->append(text);
  return false;
}

int Tokenizer::StrippedSpaces() const {
  int count = 0;
  for (const DecoderStep& step : definition_.decoder) {
    if (step.kind == DecoderStep::Kind::kStripStart) count += step.count;
  }
  return count;
}

std::string Tokenizer::Decode(absl::Span<const int32_t> ids, bool skip_special) const {
  std::string bytes, run, text;
  // Bytes that are tokens by their names are characters, or U+FFFD each, as in the reference.
  const auto finish_run = [&] {
    if (FindInvalidUtf8(run) == std::string::npos) {
      bytes += run;
    } else {
      for (size_t i = 0; i < run.size(); ++i) bytes += kReplacementCharacter;
    }
    run.clear();
  };
  bool first = true;
  for (const int32_t id : ids) {
    if (token(id).empty() || (skip_special && IsSpecial(id))) continue;
    std::string one;
    if (AppendBytes(id, std::exchange(first, false), &one)) {
      run += one;
    } else {
      finish_run();
      bytes += one;
    }
  }
  finish_run();
  AppendUtf8Lossy(bytes, /*last=*/true, &text);
  int strip = StrippedSpaces();
  StripSpaces(&text, &strip);
  return text;
}

std::string StreamDecoder::Add(int32_t id) {
  if (tokenizer_.token(id).empty() || (skip_special_ && tokenizer_.IsSpecial(id))) return "";
  tokenizer_.AppendBytes(id, std::exchange(first_, false), &pending_);
  return Take(/*last=*/false);
}

std::string StreamDecoder::Finish() {
  std::string text = Take(/*last=*/true);
  strip_ = tokenizer_.StrippedSpaces();
  first_ = true;
  return text;
}

std::string StreamDecoder::Take(bool last) {
  std::string text;
  const size_t kept = AppendUtf8Lossy(pending_, last, &text);
  pending_.erase(0, pending_.size() - kept);
  StripSpaces(&text, &strip_);
  return text;
}

}  // namespace bowline
