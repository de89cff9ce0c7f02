#ifndef BOWLINE_RUNTIME_TEXT_DEFINITION_H_
#define BOWLINE_RUNTIME_TEXT_DEFINITION_H_

// A tokenizer's definition, whatever its file format. Readers of files fill it; Tokenizer::Create checks it.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace bowline {

// A token that is found as a whole in text, before the pre-tokenizer splits the text.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;
  bool single_word = false;  // found only where no letter or digit is beside it
  bool left_strip = false;   // includes the white space before it
  bool right_strip = false;  // includes the white space behind it
  bool normalized = false;   // found in normalized text, not in the text as it is
};

struct NormalizerStep {
  enum class Kind { kNfc, kNfd, kNfkc, kNfkd, kPrepend, kReplace };
  Kind kind = Kind::kNfc;
  std::string pattern;  // kReplace
  std::string content;  // kPrepend, kReplace
};

// The use of a match of a split: a piece of its own; nothing; a part of the piece before or behind it; or one piece
// with adjacent matches.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct PreTokenizerStep {
  enum class Kind {
    kSplit,      // by an expression
    kByteLevel,  // bytes become characters of the byte alphabet
    kPrefix,     // puts `content` before a piece that does not begin with it
    kMetaspace,  // spaces become `content`
  };
  enum class Where { kAlways, kFirst, kNever };
  Kind kind = Kind::kSplit;
  std::string expression;  // kSplit: in the syntax of Oniguruma
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  std::string content;
  Where where = Where::kAlways;  // kMetaspace: the pieces that get `content` put before them
};

struct DecoderStep {
  enum class Kind {
    kByteLevel,     // characters of the byte alphabet become bytes
    kReplace,       // `pattern` becomes `content`
    kByteFallback,  // tokens such as <0x0A> become bytes
    kStripStart,    // removes `content` at the beginning of the text, up to `count` times
    kMetaspace,     // `pattern` becomes a space, or nothing in the first token if `strip_first`
  };
  Kind kind = Kind::kByteLevel;
  std::string pattern;
  std::string content;
  int count = 0;
  bool strip_first = false;
};

// Byte-pair encoding: merges pairs of tokens in a given order.
struct BpeDefinition {
  std::vector<std::pair<std::string, std::string>> merges;  // those that apply first come first
  bool byte_fallback = false;
  bool fuse_unknown = false;
  bool ignore_merges = false;  // a piece that is a token is not split
  int32_t unknown = -1;
};

// Merges neighbours to the token of the highest score, as SentencePiece does.
struct ScoreDefinition {
  std::vector<float> scores;    // by token id
  std::vector<bool> mergeable;  // by token id: whether text may become this token
  int32_t unknown = -1;
};

struct TokenizerDefinition {
  std::vector<std::string> tokens;  // by id; "" for ids without a token
  std::variant<BpeDefinition, ScoreDefinition> model;
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::vector<DecoderStep> decoder;
  std::vector<int32_t> prefix;  // ids put before a text if special tokens are wanted
  std::vector<int32_t> suffix;
  int32_t begin = -1;  // -1: there is none
  int32_t end = -1;
  int32_t pad = -1;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_DEFINITION_H_
