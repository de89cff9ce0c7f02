#ifndef BOWLINE_RUNTIME_TEXT_DEFINITION_H_
#define BOWLINE_RUNTIME_TEXT_DEFINITION_H_

// A tokenizer's definition, apart from the file that says so. Readers of files fill this; Tokenizer::Create checks it.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace bowline {

// A token that is found in text before anything is split.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;
  bool single_word = false;  // not beside a letter or a digit
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;  // takes the white space behind it
  bool normalized = false;   // looked for in normalized text
};

struct NormalizerStep {
  enum class Kind { kNfc, kNfd, kNfkc, kNfkd, kPrepend, kReplace };
  Kind kind = Kind::kNfc;
  std::string pattern;  // kReplace
  std::string content;  // kPrepend, kReplace
};

// Becomes of a match of a split: a piece, nothing, part of the piece before or behind; contiguous matches are one
// piece.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct PreTokenizerStep {
  enum class Kind {
    kSplit,      // by an expression
    kByteLevel,  // bytes become characters of the byte alphabet
    kPrefix,     // `content` in front of a piece that does not begin with it
    kMetaspace,  // spaces become `content`
  };
  enum class Where { kAlways, kFirst, kNever };
  Kind kind = Kind::kSplit;
  std::string expression;  // kSplit: in the syntax of Oniguruma
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  std::string content;
  Where where = Where::kAlways;  // kMetaspace: which pieces get `content` in front
};

struct DecoderStep {
  enum class Kind {
    kByteLevel,     // characters of the byte alphabet become bytes
    kReplace,       // `pattern` becomes `content`
    kByteFallback,  // tokens such as <0x0A> become bytes
    kStripStart,    // up to `count` times `content` less at the beginning of the text
    kMetaspace,     // `pattern` becomes a space, in the first token nothing if `strip_first`
  };
  Kind kind = Kind::kByteLevel;
  std::string pattern;
  std::string content;
  int count = 0;
  bool strip_first = false;
};

// Merges of pairs in an order.
struct BpeDefinition {
  std::vector<std::pair<std::string, std::string>> merges;  // the first of them first
  bool byte_fallback = false;
  bool fuse_unknown = false;
  bool ignore_merges = false;  // a piece that is a token is not split
  int32_t unknown = -1;
};

// Merges to tokens of the highest score, as SentencePiece has them.
struct ScoreDefinition {
  std::vector<float> scores;    // of each token
  std::vector<bool> mergeable;  // whether text becomes this token
  int32_t unknown = -1;
};

struct TokenizerDefinition {
  std::vector<std::string> tokens;  // by id; "" for ids without a token
  std::variant<BpeDefinition, ScoreDefinition> model;
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::vector<DecoderStep> decoder;
  std::vector<int32_t> prefix;  // in front of a text when special tokens are wanted
  std::vector<int32_t> suffix;
  int32_t begin = -1;  // -1: there is none
  int32_t end = -1;
  int32_t pad = -1;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_DEFINITION_H_
