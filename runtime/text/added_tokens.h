#ifndef BOWLINE_RUNTIME_TEXT_ADDED_TOKENS_H_
#define BOWLINE_RUNTIME_TEXT_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/text/definition.h"

namespace bowline {

// Finds added tokens in text from left to right, at each place the longest.
class AddedTokens {
 public:
  // Adds a token, which is found wherever the text has `content`.
  void Add(std::string content, AddedToken token);
  bool empty() const { return tokens_.empty(); }

  // Calls `found` with consecutive parts that make up `text`: with -1 for text without tokens, with a token's id for
  // its text. If `special` is false, special tokens count as text. kInvalidArgument if the text has long beginnings of
  // tokens nearly everywhere, so that the search would take more than kStepsPerByte steps for each of its bytes.
  static constexpr size_t kStepsPerByte = 64;
  absl::Status Split(absl::string_view text, bool special,
                     absl::FunctionRef<absl::Status(int32_t id, absl::string_view part)> found) const;

 private:
  // The longest token that `text` begins with, and its size in bytes; null if there is none. Adds the bytes that it
  // looked at to `steps`.
  std::pair<const AddedToken*, size_t> Match(absl::string_view text, size_t* steps) const;

  std::vector<AddedToken> tokens_;
  // A trie: from a node and a byte to a node. Node 0 is the root.
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::vector<int32_t> token_of_node_ = {-1};
  std::array<bool, 256> first_bytes_ = {};
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_ADDED_TOKENS_H_
