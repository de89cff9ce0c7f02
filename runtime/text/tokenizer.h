#ifndef BOWLINE_RUNTIME_TEXT_TOKENIZER_H_
#define BOWLINE_RUNTIME_TEXT_TOKENIZER_H_

// Encodes text as tokens, and decodes tokens to text.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/definition.h"
#include "runtime/text/pre_tokenizer.h"
#include "runtime/text/vocabulary.h"

namespace bowline {

struct EncodeOptions {
  bool add_special = true;    // adds the tokenizer's tokens around a text, such as a begin token
  bool parse_special = true;  // special tokens in the text become tokens; if false, they are text like any other
  bool one_begin = false;     // several begin tokens at the start become one
  // A text of more tokens is an error, kOutOfRange, which is found without encoding most of a far longer text.
  size_t most = std::numeric_limits<size_t>::max();
};

// Several threads may use a tokenizer at the same time.
class Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(TokenizerDefinition definition);

  // `text` is UTF-8, of less than 1 GiB.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text, const EncodeOptions& options = {}) const;

  // Returns UTF-8, with U+FFFD for invalid bytes of the tokens. Ids without a token are left out.
  std::string Decode(absl::Span<const int32_t> ids, bool skip_special = false) const;

  // All ids are below this number.
  int32_t vocabulary_size() const { return static_cast<int32_t>(vocabulary_.size()); }
  // -1 if there is no such token.
  int32_t begin_token() const { return definition_.begin; }
  int32_t end_token() const { return definition_.end; }
  int32_t pad_token() const { return definition_.pad; }
  // Returns whether `add_special` puts the begin token before a text.
  bool adds_begin_token() const;
  bool IsSpecial(int32_t id) const { return id >= 0 && id < vocabulary_size() && special_[static_cast<size_t>(id)]; }
  // "" for ids without a token.
  absl::string_view token(int32_t id) const;
  // The bytes of a token that is not the first of a text. They need not be whole characters.
  std::string Bytes(int32_t id) const;
  // The contents of the added tokens, in the order of the file.
  std::vector<std::string> AddedContents() const;
  // The id of a token by its name in the vocabulary; -1 if there is none.
  int32_t Find(absl::string_view token) const { return vocabulary_.Find(token); }

 private:
  friend class StreamDecoder;
  struct Encoding;

  explicit Tokenizer(TokenizerDefinition definition) : definition_(std::move(definition)) {}
  absl::Status CheckIds() const;
  absl::Status AddAddedTokens();
  absl::Status EncodeSection(absl::string_view section, bool at_start, Encoding* encoding) const;
  // Returns an error if the tokens so far, and the least number that `piece` must have, exceed the most.
  absl::Status CheckRoom(absl::string_view piece, const Encoding& encoding) const;
  // Appends the bytes of a token. True if its name stands for one byte, as <0x0A> does.
  bool AppendBytes(int32_t id, bool first, std::string* bytes) const;
  // The number of spaces that decoding removes at the beginning of a text.
  int StrippedSpaces() const;

  size_t longest_token_ = 1;        // in bytes
  TokenizerDefinition definition_;  // without tokens (see `vocabulary_`) and merges
  Vocabulary vocabulary_;
  std::vector<bool> special_;
  std::unique_ptr<PieceModel> model_;
  AddedTokens raw_added_;         // found in text as it is
  AddedTokens normalized_added_;  // found in normalized text
  PreTokenizer pre_tokenizer_;
};

// The options to encode a prompt. `rendered`: whether a chat template rendered the prompt and wrote the begin token
// itself. A prompt that already has the begin token gets no second one.
EncodeOptions PromptOptions(const Tokenizer& tokenizer, bool rendered);

// Turns tokens into text as they come. Holds bytes back until their character is complete.
class StreamDecoder {
 public:
  // `tokenizer` must outlive this.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer), skip_special_(skip_special), strip_(tokenizer.StrippedSpaces()) {}

  // Returns the text that `id` completes; may be empty.
  std::string Add(int32_t id);
  // Ends the text: returns U+FFFD if the last character is not complete. Then a new text may begin.
  std::string Finish();

 private:
  std::string Take(bool last);

  const Tokenizer& tokenizer_;
  const bool skip_special_;
  int strip_;
  bool first_ = true;
  std::string pending_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_TOKENIZER_H_
