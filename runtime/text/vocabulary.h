#ifndef BOWLINE_RUNTIME_TEXT_VOCABULARY_H_
#define BOWLINE_RUNTIME_TEXT_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// Maps ids to tokens, and tokens to ids.
class Vocabulary {
 public:
  static constexpr size_t kMaxTokens = size_t{1} << 22;

  // `tokens` is indexed by id, with "" for ids without a token. A token with two ids is an error.
  static absl::StatusOr<Vocabulary> Create(std::vector<std::string> tokens);

  size_t size() const { return tokens_.size(); }
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  // -1 if there is no such token.
  int32_t Find(absl::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }
  // The id of the token that stands for a byte, such as <0x0A> for byte 10; -1 if there is none.
  int32_t ByteToken(uint8_t byte) const { return byte_tokens_[byte]; }

 private:
  std::vector<std::string> tokens_;
  absl::flat_hash_map<std::string, int32_t> ids_;
  std::array<int32_t, 256> byte_tokens_ = {};
};

// The byte that a token such as <0x0A> stands for; -1 if the token stands for no byte.
int ByteOfToken(absl::string_view token);

// Turns pieces of text into tokens.
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Appends the tokens of `piece`, which is UTF-8 and below 2 GiB.
  virtual void Encode(absl::string_view piece, std::vector<int32_t>* ids) const = 0;
  // Returns whether the character becomes a token, or one token per byte, in every piece. Others may be left out.
  virtual bool Covers(absl::string_view character) const = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_VOCABULARY_H_
