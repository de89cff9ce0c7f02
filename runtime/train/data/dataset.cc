#include "runtime/train/data/dataset.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/foreign_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/base/sha256.h"
#include "runtime/train/data/dataset_formats.h"

namespace bowline {
namespace {

constexpr size_t kDigestCharacters = 16;

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

// Whether an id of `count` at `bytes` is not in [0, limit). Ids are compared as unsigned numbers, where negative ones
// are large, and blocks without an early exit, so that the loop vectorises.
template <typename T>
bool AnyOutside(const uint8_t* bytes, int64_t count, int64_t limit) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto most = static_cast<uint64_t>(std::numeric_limits<T>::max());
  if (static_cast<uint64_t>(limit) > most && std::is_unsigned_v<T>) return false;
  // The least negative id of a signed type is `most` + 1.
  const auto bound = static_cast<Unsigned>(static_cast<uint64_t>(limit) > most ? most + 1 : limit);
  constexpr int64_t kBlock = 4096;
  for (int64_t block = 0; block < count; block += kBlock) {
    const uint8_t* at = bytes + block * static_cast<int64_t>(sizeof(T));
    const int64_t size = std::min(kBlock, count - block);
    Unsigned outside = 0;
    for (int64_t i = 0; i < size; ++i) {
      Unsigned id;
      std::memcpy(&id, at + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
      outside |= static_cast<Unsigned>(id >= bound);
    }
    if (outside != 0) return true;
  }
  return false;
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
    case ElementType::kU32:
      return visitor(uint32_t{});
    case ElementType::kI64:
      return visitor(int64_t{});
    case ElementType::kU64:
      return visitor(uint64_t{});
    default:
      return visitor(uint16_t{});
  }
}

class ArrayTokenDataset : public TokenDataset {
 public:
  ArrayTokenDataset(TokenArray array, std::string path, DatasetOptions options)
      : array_(array), path_(std::move(path)), vocabulary_(std::min(options.vocabulary, int64_t{1} << 31)) {}

  // Keeps the files of the arrays mapped.
  void Own(MappedFile file) {
    file.SurviveFaults();
    files_.push_back(std::move(file));
  }
  void SetMegatronIndex(const MegatronIndex& index) { megatron_index_ = index; }

  int64_t size() const override { return array_.size(); }
  const std::string& path() const override { return path_; }
  std::string description() const override { return absl::StrCat(array_.format, ", ", NameOf(array_.type)); }
  int64_t max_possible_id() const override {
    return VisitTokenType(array_.type, [](auto zero) {
      return static_cast<int64_t>(
          std::min<uint64_t>(std::numeric_limits<decltype(zero)>::max(), std::numeric_limits<int32_t>::max()));
    });
  }
  bool MayBeOutside() const override {
    return VisitTokenType(array_.type, [this](auto zero) {
      using T = decltype(zero);
      return std::is_signed_v<T> || std::numeric_limits<T>::max() >= static_cast<uint64_t>(vocabulary_);
    });
  }

  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override {
    if (begin < 0 || count < 0 || begin > size() || count > size() - begin) {
      return absl::OutOfRangeError(absl::StrCat("'", path_, "': tokens [", begin, ", ", begin, " + ", count,
                                                ") are not inside the file's ", size(), " tokens"));
    }
    const uint8_t* bytes = BytesAt(begin);
    const int64_t bad =
        VisitTokenType(array_.type, [&](auto zero) { return Decode<decltype(zero)>(bytes, count, vocabulary_, out); });
    BOWLINE_RETURN_IF_ERROR(CheckFiles());
    return bad < 0 ? absl::OkStatus() : Outside(begin + bad);
  }

  absl::Status CheckTokens(int64_t begin, int64_t count) const override {
    return VisitTokenType(array_.type, [&](auto zero) -> absl::Status {
      using T = decltype(zero);
      const bool any = AnyOutside<T>(BytesAt(begin), count, vocabulary_);
      BOWLINE_RETURN_IF_ERROR(CheckFiles());
      if (!any) return absl::OkStatus();
      while (!AnyOutside<T>(BytesAt(begin), 1, vocabulary_)) ++begin;
      return Outside(begin);
    });
  }

  bool HasIndex() const override { return megatron_index_.has_value(); }
  absl::Status CheckIndex() const override {
    return megatron_index_ ? CheckMegatronIndex(*megatron_index_, path_) : absl::OkStatus();
  }

 private:
  absl::Status CheckFiles() const {
    for (const MappedFile& file : files_) BOWLINE_RETURN_IF_ERROR(file.CheckRead());
    return absl::OkStatus();
  }

  const uint8_t* BytesAt(int64_t token) const {
    return array_.bytes.data() + static_cast<size_t>(token) * SizeOf(array_.type);
  }

  // The error of a token that is outside of the vocabulary.
  absl::Status Outside(int64_t token) const {
    const std::string id = VisitTokenType(array_.type, [&](auto value) {
      std::memcpy(&value, BytesAt(token), sizeof(value));
      return std::to_string(value);
    });
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "': token ", token, " has the id ", id,
                                                   ", outside of the vocabulary [0, ", vocabulary_,
                                                   "); tokenize the data with the model's tokenizer"));
  }

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
  // A file that is another's is not taken for raw tokens.
  if (const std::string other = DescribeOtherLlmc(bytes); !other.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no token file, but ", other));
  }
  if (const absl::string_view format = ForeignFormatOf(bytes); !format.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no token file; ", format, "; `bowline data tokenize` makes token files of text"));
  }
  // Text, for example, is no raw file either, and the message must not advise to give it as one.
  const bool may_be_raw = ParseRawTokens(bytes, ElementType::kU16, name).ok();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name,
      "' is no token file: its first bytes are neither llm.c's magic 20240520 or 20240801 nor that of .npy, and no "
      "Megatron .idx file belongs to it; make one with bowline-data tokenize",
      may_be_raw ? absl::StrCat(", or, if it holds raw tokens of 16 bits and nothing else, give it as u16:", name)
                 : ""));
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

// An index that is there and cannot be opened, as a Git LFS pointer, is an error.
absl::StatusOr<bool> IsMegatronIndex(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (absl::IsNotFound(file.status())) return false;
  BOWLINE_RETURN_IF_ERROR(file.status());
  return LooksLikeMegatronIndex(file->bytes());
}

// The type that the prefix of a path names, which is taken off.
std::optional<ElementType> ConsumeRawPrefix(absl::string_view* path) {
  for (const ElementType type : {ElementType::kU16, ElementType::kU32}) {
    if (absl::ConsumePrefix(path, absl::StrCat(NameOf(type), ":"))) return type;
  }
  return std::nullopt;
}

// Explains a name before a colon that stands for nothing, where the rest of the path is a file.
absl::Status ExplainPrefix(const std::string& path, const absl::Status& status) {
  const size_t colon = path.find(':');
  std::error_code ignored;
  if (!absl::IsNotFound(status) || colon == std::string::npos) return status;
  absl::string_view rest = absl::string_view(path).substr(colon + 1);
  ConsumeRawPrefix(&rest);
  if (!std::filesystem::exists(std::string(rest), ignored)) return status;
  return absl::InvalidArgumentError(absl::StrCat("'", path, "': '", path.substr(0, colon),
                                                 "' is neither u16 nor u32, the types of raw tokens, nor a weight, "
                                                 "which is a number as in 0.7:FILE"));
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenRaw(const std::string& path, ElementType type,
                                                      DatasetOptions options) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", NameOf(type), ":' names no file; give it behind the colon"));
  }
  BOWLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  BOWLINE_ASSIGN_OR_RETURN(const TokenArray array, ParseRawTokens(file.bytes(), type, path));
  auto dataset = std::make_unique<ArrayTokenDataset>(array, path, options);
  dataset->Own(std::move(file));
  return dataset;
}

std::string DigestOfParts(const std::vector<DatasetPart>& parts) {
  double all = 0;
  for (const DatasetPart& part : parts) all += part.weight;
  Sha256 hash;
  for (const DatasetPart& part : parts) {
    // Digits that other spellings of the same weights share.
    const std::string share = all > 0 ? absl::StrFormat(" %.9f", part.weight / all) : "";
    hash.Update(absl::StrCat(DigestOf(*part.dataset), share, "\n"));
  }
  return ToHex(hash.Finish()).substr(0, kDigestCharacters);
}

}  // namespace

absl::Status TokenDataset::CheckTokens(int64_t begin, int64_t count) const {
  constexpr int64_t kBlock = 1 << 16;
  std::vector<int32_t> block(static_cast<size_t>(std::min(kBlock, count)));
  for (const int64_t end = begin + count; begin < end; begin += kBlock) {
    BOWLINE_RETURN_IF_ERROR(Read(begin, std::min(kBlock, end - begin), block.data()));
  }
  return absl::OkStatus();
}

absl::string_view PrefixOfTokens(absl::string_view path) {
  absl::string_view file = path;
  ConsumeRawPrefix(&file);
  return path.substr(0, path.size() - file.size());
}

std::vector<std::string> FilesOfTokens(const std::string& path) {
  absl::string_view file = path;
  if (ConsumeRawPrefix(&file)) return {std::string(file)};
  std::error_code ignored;
  absl::string_view stem = path;
  // The stem of two files has no extension, unless a file has that name.
  const bool is_stem =
      !std::filesystem::exists(path, ignored) && std::filesystem::exists(absl::StrCat(path, ".idx"), ignored);
  if (!is_stem && !absl::ConsumeSuffix(&stem, ".idx")) absl::ConsumeSuffix(&stem, ".bin");
  std::string index = absl::StrCat(stem, ".idx");
  if (!is_stem && (stem == path || !std::filesystem::exists(index, ignored))) return {path};
  return {std::move(index), absl::StrCat(stem, ".bin")};
}

std::string NamesOf(const TokenDataset& dataset) {
  constexpr size_t kMostCharacters = 200;
  const std::vector<DatasetPart> parts = dataset.Parts();
  double all = 0;
  for (const DatasetPart& part : parts) all += part.weight;
  std::string names;
  for (const DatasetPart& part : parts) {
    const std::string name = absl::Utf8SafeCEscape(std::filesystem::path(part.dataset->path()).filename().string());
    const std::string share = all > 0 ? absl::StrFormat(" (%g %%)", 100 * part.weight / all) : "";
    if (names.size() + name.size() + share.size() > kMostCharacters) {
      return names.empty() ? name.substr(0, kMostCharacters) : absl::StrCat(names, ", ...");
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", name, share);
  }
  return names;
}

std::string DigestOf(const TokenDataset& dataset) {
  constexpr int64_t kBlock = 1024, kBlocks = 64;
  if (const std::vector<DatasetPart> parts = dataset.Parts(); parts.size() > 1) return DigestOfParts(parts);
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
    // A scan finds ids beyond the vocabulary.
    if (!dataset.Read(begin, count, tokens.data()).ok()) std::fill(tokens.begin(), tokens.end(), -1);
    hash.Update({reinterpret_cast<const uint8_t*>(tokens.data()), static_cast<size_t>(count) * sizeof(int32_t)});
  }
  return ToHex(hash.Finish()).substr(0, kDigestCharacters);
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
  absl::string_view file_of_raw = path;
  if (const std::optional<ElementType> type = ConsumeRawPrefix(&file_of_raw)) {
    return OpenRaw(std::string(file_of_raw), *type, options);
  }
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    BOWLINE_ASSIGN_OR_RETURN(const bool is_stem, IsMegatronIndex(absl::StrCat(path, ".idx")));
    if (is_stem) return OpenMegatron(path, options);
  }
  absl::StatusOr<MappedFile> opened = MappedFile::Open(path);
  if (!opened.ok()) return ExplainPrefix(path, opened.status());
  MappedFile file = *std::move(opened);
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
  if (!LooksLikeLlmc(bytes) && !LooksLikeNpy(bytes) && absl::ConsumeSuffix(&stem, ".bin")) {
    BOWLINE_ASSIGN_OR_RETURN(const bool has_index, IsMegatronIndex(absl::StrCat(stem, ".idx")));
    if (has_index) return OpenMegatron(std::string(stem), options);
    const std::string beside = absl::StrCat(stem, ".idx");
    if (std::filesystem::exists(beside, ignored)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' is no token file by itself, and '", beside,
                       "' beside it does not begin with Megatron's index magic MMIDIDX; make the index again"));
    }
  }
  BOWLINE_ASSIGN_OR_RETURN(const TokenArray array, ParseArray(bytes, path));
  auto dataset = std::make_unique<ArrayTokenDataset>(array, path, options);
  dataset->Own(std::move(file));
  return dataset;
}

}  // namespace bowline
