#include "runtime/text/bpe_model.h"

#include <queue>
#include <utility>

#include "absl/strings/escaping.h"
#include "runtime/text/utf8.h"

namespace bowline {
namespace {

struct Symbol {
  int32_t id;
  int32_t previous;
  int32_t next;
  bool merged_away = false;
};

struct Merge {
  int32_t rank;
  int32_t id;  // of the token that the pair becomes
};

struct Candidate {
  int32_t rank;
  int32_t at;  // the left symbol
  int32_t id;
  // The queue has its largest on top.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

class BpeModel : public PieceModel {
 public:
  BpeModel(const BpeDefinition& definition, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary),
        byte_fallback_(definition.byte_fallback),
        fuse_unknown_(definition.fuse_unknown),
        ignore_merges_(definition.ignore_merges),
        unknown_(definition.unknown) {}

  absl::Status AddMerges(const std::vector<std::pair<std::string, std::string>>& merges) {
    if (merges.size() > Vocabulary::kMaxTokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are ", merges.size(), " merges; the limit is ", Vocabulary::kMaxTokens));
    }
    merges_.reserve(merges.size());
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const auto& [left, right] = merges[rank];
      const int32_t left_id = vocabulary_.Find(left), right_id = vocabulary_.Find(right);
      const int32_t id = vocabulary_.Find(left + right);
      if (left_id < 0 || right_id < 0 || id < 0) {
        const std::string& missing = left_id < 0 ? left : right_id < 0 ? right : left + right;
        return absl::InvalidArgumentError(absl::StrCat(
            "merge ", rank, " needs the token '", absl::Utf8SafeCEscape(missing), "', which the vocabulary lacks"));
      }
      merges_.insert_or_assign(PairKey(left_id, right_id), Merge{static_cast<int32_t>(rank), id});
    }
    return absl::OkStatus();
  }

  void Encode(absl::string_view piece, std::vector<int32_t>* ids) const override {
    if (ignore_merges_) {
      if (const int32_t id = vocabulary_.Find(piece); id >= 0) {
        ids->push_back(id);
        return;
      }
    }
    std::vector<Symbol> symbols = Symbols(piece);
    MergeAll(&symbols);
    for (const Symbol& symbol : symbols) {
      if (!symbol.merged_away) ids->push_back(symbol.id);
    }
  }

  bool Covers(absl::string_view character) const override {
    return vocabulary_.Find(character) >= 0 || (byte_fallback_ && HasBytes(character));
  }

 private:
  std::vector<Symbol> Symbols(absl::string_view piece) const {
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    const auto add = [&](int32_t id) {
      const int32_t at = static_cast<int32_t>(symbols.size());
      symbols.push_back({id, at - 1, at + 1});
    };
    // An unknown token is held back, so that others may become one with it. Bytes pass it by, as in the reference.
    bool unknown_waits = false;
    for (size_t at = 0; at < piece.size();) {
      const absl::string_view character = piece.substr(at, NextUtf8(piece.substr(at)).size);
      at += character.size();
      if (const int32_t id = vocabulary_.Find(character); id >= 0) {
        if (std::exchange(unknown_waits, false)) add(unknown_);
        add(id);
        continue;
      }
      if (byte_fallback_ && HasBytes(character)) {
        for (const char byte : character) add(vocabulary_.ByteToken(static_cast<uint8_t>(byte)));
        continue;
      }
      if (unknown_ < 0) continue;
      if (unknown_waits && !fuse_unknown_) add(unknown_);
      unknown_waits = true;
    }
    if (unknown_waits) add(unknown_);
    if (!symbols.empty()) symbols.back().next = -1;
    return symbols;
  }

  bool HasBytes(absl::string_view character) const {
    for (const char byte : character) {
      if (vocabulary_.ByteToken(static_cast<uint8_t>(byte)) < 0) return false;
    }
    return true;
  }

  const Merge* FindMerge(int32_t left, int32_t right) const {
    const auto found = merges_.find(PairKey(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

  void MergeAll(std::vector<Symbol>* all) const {
    std::vector<Symbol>& symbols = *all;
    std::priority_queue<Candidate> queue;
    const auto consider = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return;
      const Merge* const merge =
          FindMerge(symbols[static_cast<size_t>(left)].id, symbols[static_cast<size_t>(right)].id);
      if (merge != nullptr) queue.push({merge->rank, left, merge->id});
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i), static_cast<int32_t>(i + 1));
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<size_t>(top.at)];
      if (left.merged_away || left.next < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      const Merge* const merge = FindMerge(left.id, right.id);
      if (merge == nullptr || merge->id != top.id) continue;  // one of them has merged since
      left.id = merge->id;
      right.merged_away = true;
      left.next = right.next;
      if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = top.at;
      consider(left.previous, top.at);
      consider(top.at, left.next);
    }
  }

  const Vocabulary& vocabulary_;
  const bool byte_fallback_, fuse_unknown_, ignore_merges_;
  const int32_t unknown_;
  absl::flat_hash_map<uint64_t, Merge> merges_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PieceModel>> MakeBpeModel(const BpeDefinition& definition,
                                                         const Vocabulary& vocabulary) {
  if (definition.unknown >= static_cast<int64_t>(vocabulary.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the unknown token has id ", definition.unknown,
                                                   ", beyond the vocabulary of ", vocabulary.size()));
  }
  auto model = std::make_unique<BpeModel>(definition, vocabulary);
  BOWLINE_RETURN_IF_ERROR(model->AddMerges(definition.merges));
  return model;
}

}  // namespace bowline
