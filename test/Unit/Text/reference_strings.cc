#include "test/Unit/Text/reference_strings.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"
#include "runtime/base/sha256.h"
#include "runtime/text/utf8.h"

namespace bowline {
namespace {

// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (z ^ z >> 31) % bound;
  }

 private:
  uint64_t state_;
};

std::vector<absl::string_view> Characters(absl::string_view text) {
  std::vector<absl::string_view> characters;
  for (size_t at = 0; at < text.size();) {
    characters.push_back(text.substr(at, NextUtf8(text.substr(at)).size));
    at += characters.back().size();
  }
  return characters;
}

void AppendIds(absl::Span<const int32_t> ids, Sha256* hash) {
  for (const int32_t id : ids) hash->Update(absl::StrCat(id, " "));
  hash->Update("\n");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadReferenceStrings(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> strings;
  for (std::string line; std::getline(file, line);) {
    BOWLINE_ASSIGN_OR_RETURN(const nlohmann::json value, ParseJson(line, path));
    if (!value.is_string()) return absl::InvalidArgumentError(absl::StrCat(path, ": a line is no string"));
    strings.push_back(value.get<std::string>());
  }
  if (strings.empty()) return absl::NotFoundError(absl::StrCat("there are no strings in ", path));
  return strings;
}

std::string MakeReferenceString(uint64_t index, absl::Span<const std::string> strings,
                                absl::Span<const std::string> added) {
  if (index < strings.size()) return strings[index];
  Random random(index);
  std::string text;
  for (uint64_t parts = random.Below(6) + 1; parts > 0; --parts) {
    const uint64_t kind = random.Below(8);
    if (kind < 4) {
      const std::vector<absl::string_view> characters = Characters(strings[random.Below(strings.size())]);
      if (characters.empty()) continue;
      const uint64_t begin = random.Below(characters.size());
      const uint64_t count = random.Below(std::min<uint64_t>(characters.size() - begin, 24)) + 1;
      for (uint64_t i = begin; i < begin + count; ++i) absl::StrAppend(&text, characters[i]);
    } else if (kind == 4) {
      if (!added.empty()) text += added[random.Below(added.size())];
    } else if (kind == 5) {
      const char c = " \n\t0a\r"[random.Below(6)];
      text.append(random.Below(8) + 1, c);
    } else {
      for (uint64_t count = random.Below(4) + 1; count > 0; --count) {
        constexpr uint64_t kBounds[] = {0x80, 0x800, 0x10000, 0x110000};
        const uint64_t code_point = random.Below(kBounds[random.Below(4)]);
        AppendCodePoint(code_point >= 0xD800 && code_point < 0xE000 ? 0xFFFD : static_cast<char32_t>(code_point),
                        &text);
      }
    }
  }
  return text;
}

absl::StatusOr<std::string> DigestOfReferenceBlock(const Tokenizer& tokenizer, uint64_t block,
                                                   absl::Span<const std::string> strings,
                                                   absl::Span<const std::string> added) {
  Sha256 hash;
  for (uint64_t index = block * kReferenceBlock; index < (block + 1) * kReferenceBlock; ++index) {
    const std::string text = MakeReferenceString(index, strings, added);
    const EncodeOptions options{.add_special = index % 2 == 0, .parse_special = index % 3 != 0};
    BOWLINE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.Encode(text, options));
    AppendIds(ids, &hash);
    hash.Update(absl::StrCat(tokenizer.Decode(ids, index % 2 == 0), "\n"));
    Random random(~index);
    std::vector<int32_t> others;
    for (uint64_t count = random.Below(12); count > 0; --count) {
      others.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(tokenizer.vocabulary_size()))));
    }
    hash.Update(absl::StrCat(tokenizer.Decode(others), "\n"));
  }
  return ToHex(hash.Finish()).substr(0, 16);
}

}  // namespace bowline
