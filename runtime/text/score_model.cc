#include "runtime/text/score_model.h"

#include <cmath>
#include <queue>

#include "runtime/text/utf8.h"

namespace bowline {
namespace {

struct ScoredSymbol {
  size_t begin;
  size_t size;  // 0: merged away
  int32_t previous;
  int32_t next;
};

struct ScoredPair {
  float score;
  int32_t left;
  int32_t right;
  size_t size;  // of both together
  bool operator<(const ScoredPair& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

class ScoreModel : public PieceModel {
 public:
  ScoreModel(const ScoreDefinition& definition, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), definition_(definition) {}

  void Encode(absl::string_view piece, std::vector<int32_t>* ids) const override {
    std::vector<ScoredSymbol> symbols;
    for (size_t at = 0; at < piece.size();) {
      const size_t size = NextUtf8(piece.substr(at)).size;
      const int32_t index = static_cast<int32_t>(symbols.size());
      symbols.push_back({at, size, index - 1, index + 1});
      at += size;
    }
    if (symbols.empty()) return;
    symbols.back().next = -1;
    std::priority_queue<ScoredPair> queue;
    const auto consider = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return;
      const ScoredSymbol& first = symbols[static_cast<size_t>(left)];
      const size_t size = first.size + symbols[static_cast<size_t>(right)].size;
      const int32_t id = FindMergeable(piece.substr(first.begin, size));
      if (id >= 0) queue.push({definition_.scores[static_cast<size_t>(id)], left, right, size});
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i), static_cast<int32_t>(i + 1));
    while (!queue.empty()) {
      const ScoredPair top = queue.top();
      queue.pop();
      ScoredSymbol& left = symbols[static_cast<size_t>(top.left)];
      ScoredSymbol& right = symbols[static_cast<size_t>(top.right)];
      if (left.size == 0 || right.size == 0 || left.size + right.size != top.size) continue;  // merged since
      left.size = top.size;
      right.size = 0;
      left.next = right.next;
      if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = top.left;
      consider(left.previous, top.left);
      consider(top.left, left.next);
    }
    bool after_unknown = false;
    for (const ScoredSymbol& symbol : symbols) {
      if (symbol.size != 0) AddToken(piece.substr(symbol.begin, symbol.size), &after_unknown, ids);
    }
  }

  bool Covers(absl::string_view character) const override {
    return FindMergeable(character) >= 0 || HasBytes(character);
  }

 private:
  int32_t FindMergeable(absl::string_view text) const {
    const int32_t id = vocabulary_.Find(text);
    return id >= 0 && definition_.mergeable[static_cast<size_t>(id)] ? id : -1;
  }

  bool HasBytes(absl::string_view text) const {
    bool bytes = true;
    for (const char byte : text) bytes &= vocabulary_.ByteToken(static_cast<uint8_t>(byte)) >= 0;
    return bytes;
  }

  // Neighbouring characters without a token are one unknown token.
  void AddToken(absl::string_view text, bool* after_unknown, std::vector<int32_t>* ids) const {
    if (const int32_t id = FindMergeable(text); id >= 0) {
      ids->push_back(id);
      *after_unknown = false;
      return;
    }
    if (HasBytes(text)) {
      for (const char byte : text) ids->push_back(vocabulary_.ByteToken(static_cast<uint8_t>(byte)));
      *after_unknown = false;
    } else if (definition_.unknown >= 0 && !*after_unknown) {
      ids->push_back(definition_.unknown);
      *after_unknown = true;
    }
  }

  const Vocabulary& vocabulary_;
  const ScoreDefinition definition_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PieceModel>> MakeScoreModel(const ScoreDefinition& definition,
                                                           const Vocabulary& vocabulary) {
  if (definition.scores.size() != vocabulary.size() || definition.mergeable.size() != vocabulary.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", definition.scores.size(), " scores for ",
                                                   vocabulary.size(), " tokens; each token needs one"));
  }
  for (size_t id = 0; id < definition.scores.size(); ++id) {
    if (std::isnan(definition.scores[id])) {
      return absl::InvalidArgumentError(absl::StrCat("the score of token ", id, " is no number"));
    }
  }
  if (definition.unknown >= static_cast<int64_t>(vocabulary.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the unknown token has id ", definition.unknown,
                                                   ", beyond the vocabulary of ", vocabulary.size()));
  }
  return std::make_unique<ScoreModel>(definition, vocabulary);
}

}  // namespace bowline
