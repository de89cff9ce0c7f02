#include "runtime/train/dataset.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/base/sha256.h"
#include "runtime/train/dataset_formats.h"

namespace bowline {
namespace {

// Copies `count` elements at `bytes` to `out`. The position of the first that is not in [0, limit), or -1.
template <typename T>
int64_t Decode(const uint8_t* bytes, int64_t count, int64_t limit, int32_t* out) {
  bool in_range = true;  // without an early exit, so that the loop vectorises
  for (int64_t i = 0; i < count; ++i) {
    T id;
    std::memcpy(&id, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    in_range &= static_cast<int64_t>(id) >= 0 && static_cast<int64_t>(id) < limit;
    out[i] = static_cast<int32_t>(id);
  }
  if (in_range) return -1;
  for (int64_t i = 0;; ++i) {
    T id;
    std::memcpy(&id, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if (static_cast<int64_t>(id) < 0 || static_cast<int64_t>(id) >= limit) return i;
  }
}

// Calls `visitor` with a value of the C++ type that stores `type`.
template <typename Visitor>
auto VisitTokenType(ElementType type, Visitor visitor) {
  switch (type) {
    case ElementType::kU8:
      return visitor(uint8_t{});
    case ElementType::kI8:
      return visitor(int8_t{});
    case ElementType::kI16:
      return visitor(int16_t{});
    case ElementType::kI32:
      return visitor(int32_t{});
    case ElementType::kI64:
      return visitor(int64_t{});
    default:
      return visitor(uint16_t{});
  }
}

class ArrayTokenDataset : public TokenDataset {
 public:
  ArrayTokenDataset(TokenArray array, std::string path, DatasetOptions options)
      : array_(array), path_(std::move(path)), vocabulary_(std::min(options.vocabulary, int64_t{1} << 31)) {}

  // Keeps the files of the arrays mapped.
  void Own(MappedFile file) { files_.push_back(std::move(file)); }
  void SetMegatronIndex(const MegatronIndex& index) { megatron_index_ = index; }

  int64_t size() const override { return array_.size(); }
  const std::string& path() const override { return path_; }
  std::string description() const override { return absl::StrCat(array_.format, ", ", NameOf(array_.type)); }
  int64_t max_possible_id() const override {
    return VisitTokenType(array_.type, [](auto zero) {
      return std::min<int64_t>(std::numeric_limits<decltype(zero)>::max(), std::numeric_limits<int32_t>::max());
    });
  }

  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override {
    if (begin < 0 || count < 0 || begin > size() || count > size() - begin) {
      return absl::OutOfRangeError(absl::StrCat("'", path_, "': tokens [", begin, ", ", begin, " + ", count,
                                                ") are not inside the file's ", size(), " tokens"));
    }
    const uint8_t* bytes = array_.bytes.data() + static_cast<size_t>(begin) * SizeOf(array_.type);
    const int64_t bad =
        VisitTokenType(array_.type, [&](auto zero) { return Decode<decltype(zero)>(bytes, count, vocabulary_, out); });
    if (bad < 0) return absl::OkStatus();
    const int64_t id = VisitTokenType(array_.type, [&](auto value) {
      std::memcpy(&value, bytes + static_cast<size_t>(bad) * sizeof(value), sizeof(value));
      return static_cast<int64_t>(value);
    });
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "': token ", begin + bad, " has the id ", id,
                                                   ", outside of the vocabulary [0, ", vocabulary_,
                                                   "); tokenize the data with the model's tokenizer"));
  }

  absl::Status CheckIndex() const override {
    return megatron_index_ ? CheckMegatronIndex(*megatron_index_, path_) : absl::OkStatus();
  }

 private:
  TokenArray array_;
  std::string path_;
  int64_t vocabulary_;
  std::optional<MegatronIndex> megatron_index_;
  std::vector<MappedFile> files_;
};

absl::StatusOr<TokenArray> ParseArray(absl::Span<const uint8_t> bytes, const std::string& name) {
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat("'", name, "' is empty; give a file of tokens"));
  if (LooksLikeNpy(bytes)) return ParseNpyTokens(bytes, name);
  if (LooksLikeLlmc(bytes)) return ParseLlmc(bytes, name);
  return absl::InvalidArgumentError(
      absl::StrCat("'", name,
                   "' is no token file: its first bytes are neither llm.c's magic 20240520 nor that of .npy, and no "
                   "Megatron .idx file belongs to it; make one with bowline-data tokenize"));
}

absl::StatusOr<std::unique_ptr<ArrayTokenDataset>> MakeMegatron(absl::Span<const uint8_t> index,
                                                                absl::Span<const uint8_t> tokens,
                                                                const std::string& name, DatasetOptions options) {
  BOWLINE_ASSIGN_OR_RETURN(const MegatronIndex parsed, ParseMegatronIndex(index, tokens.size(), name));
  auto dataset = std::make_unique<ArrayTokenDataset>(TokenArray{"Megatron", parsed.type, tokens}, name, options);
  dataset->SetMegatronIndex(parsed);
  return dataset;
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenMegatron(const std::string& stem, DatasetOptions options) {
  const std::string name = absl::StrCat(stem, ".idx");
  BOWLINE_ASSIGN_OR_RETURN(MappedFile index, MappedFile::Open(name));
  BOWLINE_ASSIGN_OR_RETURN(MappedFile tokens, MappedFile::Open(absl::StrCat(stem, ".bin")));
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<ArrayTokenDataset> dataset,
                           MakeMegatron(index.bytes(), tokens.bytes(), name, options));
  dataset->Own(std::move(index));
  dataset->Own(std::move(tokens));
  return dataset;
}

bool IsMegatronIndex(const std::string& path) {
  const auto file = MappedFile::Open(path);
  return file.ok() && LooksLikeMegatronIndex(file->bytes());
}

}  // namespace

std::string DigestOf(const TokenDataset& dataset) {
  constexpr int64_t kBlock = 1024, kBlocks = 64;
  constexpr size_t kCharacters = 16;
  Sha256 hash;
  const int64_t size = dataset.size();
  hash.Update(absl::StrCat(size, "\n"));
  std::vector<int32_t> tokens(kBlock);
  const int64_t blocks = std::min(kBlocks, (size + kBlock - 1) / kBlock);
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t count = std::min(kBlock, size);
    // The quotient and the rest apart, whose products are far below 2^63.
    const int64_t last = size - count, steps = std::max<int64_t>(blocks - 1, 1);
    const int64_t begin = last / steps * i + last % steps * i / steps;
    // Ids beyond the vocabulary are an error when a step draws them.
    if (!dataset.Read(begin, count, tokens.data()).ok()) std::fill(tokens.begin(), tokens.end(), -1);
    hash.Update({reinterpret_cast<const uint8_t*>(tokens.data()), static_cast<size_t>(count) * sizeof(int32_t)});
  }
  return ToHex(hash.Finish()).substr(0, kCharacters);
}

absl::StatusOr<std::unique_ptr<TokenDataset>> TokenDatasetFromBytes(absl::Span<const uint8_t> bytes,
                                                                    const std::string& name, DatasetOptions options) {
  BOWLINE_ASSIGN_OR_RETURN(const TokenArray array, ParseArray(bytes, name));
  return std::make_unique<ArrayTokenDataset>(array, name, options);
}

absl::StatusOr<std::unique_ptr<TokenDataset>> MegatronDatasetFromBytes(absl::Span<const uint8_t> index,
                                                                       absl::Span<const uint8_t> tokens,
                                                                       const std::string& name,
                                                                       DatasetOptions options) {
  return MakeMegatron(index, tokens, name, options);
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenTokenDataset(const std::string& path, DatasetOptions options) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) && IsMegatronIndex(absl::StrCat(path, ".idx"))) {
    return OpenMegatron(path, options);
  }
  BOWLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file.bytes();
  if (LooksLikeMegatronIndex(bytes)) {
    absl::string_view stem = path;
    if (!absl::ConsumeSuffix(&stem, ".idx")) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' is a Megatron index; name it .idx, beside the .bin file with the same stem"));
    }
    return OpenMegatron(std::string(stem), options);
  }
  absl::string_view stem = path;
  if (!LooksLikeLlmc(bytes) && !LooksLikeNpy(bytes) && absl::ConsumeSuffix(&stem, ".bin") &&
      IsMegatronIndex(absl::StrCat(stem, ".idx"))) {
    return OpenMegatron(std::string(stem), options);
  }
  BOWLINE_ASSIGN_OR_RETURN(const TokenArray array, ParseArray(bytes, path));
  auto dataset = std::make_unique<ArrayTokenDataset>(array, path, options);
  dataset->Own(std::move(file));
  return dataset;
}

}  // namespace bowline
