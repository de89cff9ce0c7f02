#include "runtime/train/data/dataset_formats.h"

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

constexpr absl::string_view kMegatronMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kMegatronVersion = 1;
// Magic, version (u64), type code (u8), number of sequences (u64), number of document indices (u64).
constexpr uint64_t kMegatronHeaderBytes = 9 + 8 + 1 + 8 + 8;

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Status Invalid(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': ", what));
}

absl::Status Truncated(const std::string& name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("'", name, "': ", what, "; the file is truncated or damaged, make it again"));
}

}  // namespace

bool LooksLikeLlmc(absl::Span<const uint8_t> file) {
  if (file.size() < sizeof(int32_t)) return false;
  const int32_t magic = Load<int32_t>(file.data());
  return magic == kLlmcMagic || magic == kLlmcWideMagic;
}

std::string DescribeOtherLlmc(absl::Span<const uint8_t> file) {
  constexpr int32_t kEvaluationMagic = 20240522;
  if (file.size() < kLlmcHeaderBytes) return "";
  const int32_t magic = Load<int32_t>(file.data());
  if (magic == kEvaluationMagic) return "is a file of questions for llm.c's evaluation (magic 20240522), not of tokens";
  const auto swapped = static_cast<int32_t>(__builtin_bswap32(static_cast<uint32_t>(magic)));
  if (swapped == kLlmcMagic || swapped == kLlmcWideMagic) {
    return "is a token file of llm.c in big-endian order; write it on a little-endian machine";
  }
  return "";
}

absl::StatusOr<TokenArray> ParseLlmc(absl::Span<const uint8_t> file, const std::string& name) {
  if (file.size() < kLlmcHeaderBytes) {
    return Truncated(name,
                     absl::StrCat("has ", file.size(), " bytes, less than the llm.c header's ", kLlmcHeaderBytes));
  }
  const bool is_wide = Load<int32_t>(file.data()) == kLlmcWideMagic;
  const ElementType type = is_wide ? ElementType::kU32 : ElementType::kU16;
  const int32_t version = Load<int32_t>(file.data() + 4);
  if (version != kLlmcVersion && !(is_wide && version == kLlmcWideVersion)) {
    return Invalid(name, absl::StrCat("llm.c token file of version ", version, "; supported is version ", kLlmcVersion,
                                      is_wide ? absl::StrCat(" or ", kLlmcWideVersion) : ""));
  }
  // llm.c counts in int32; files beyond 2^31 tokens exist and wrap into the sign bit.
  const uint64_t tokens = Load<uint32_t>(file.data() + 8);
  const uint64_t data_bytes = file.size() - kLlmcHeaderBytes;
  if (data_bytes != tokens * SizeOf(type)) {
    return Truncated(name, absl::StrCat("the header promises ", tokens, " tokens, ", tokens * SizeOf(type),
                                        " bytes, but ", data_bytes, " bytes follow it"));
  }
  return TokenArray{"llm.c", type, file.subspan(kLlmcHeaderBytes)};
}

bool LooksLikeMegatronIndex(absl::Span<const uint8_t> file) { return absl::StartsWith(AsText(file), kMegatronMagic); }

absl::StatusOr<MegatronIndex> ParseMegatronIndex(absl::Span<const uint8_t> file, uint64_t token_bytes,
                                                 const std::string& name) {
  if (!LooksLikeMegatronIndex(file)) return Invalid(name, "does not begin with Megatron's index magic MMIDIDX");
  if (file.size() < kMegatronHeaderBytes) {
    return Truncated(name,
                     absl::StrCat("has ", file.size(), " bytes, less than the index header's ", kMegatronHeaderBytes));
  }
  const uint8_t* header = file.data() + kMegatronMagic.size();
  const uint64_t version = Load<uint64_t>(header);
  if (version != kMegatronVersion) {
    return Invalid(name, absl::StrCat("Megatron index of version ", version, "; supported is ", kMegatronVersion));
  }
  MegatronIndex index;
  switch (const uint8_t code = header[8]) {
    case 1:
      index.type = ElementType::kU8;
      break;
    case 2:
      index.type = ElementType::kI8;
      break;
    case 3:
      index.type = ElementType::kI16;
      break;
    case 4:
      index.type = ElementType::kI32;
      break;
    case 5:
      index.type = ElementType::kI64;
      break;
    case 8:
      index.type = ElementType::kU16;
      break;
    default:
      return Invalid(
          name, absl::StrCat("type code ", code, " is none of 1 (u8), 2 (i8), 3 (i16), 4 (i32), 5 (i64), 8 (u16)"));
  }
  const uint64_t sequences = Load<uint64_t>(header + 9);
  const uint64_t documents = Load<uint64_t>(header + 17);
  const uint64_t array_bytes = file.size() - kMegatronHeaderBytes;
  // Bounded by the file first, so that the products below cannot overflow.
  const uint64_t needed =
      sequences <= array_bytes && documents <= array_bytes ? sequences * 12 + documents * 8 : UINT64_MAX;
  // A trailing int8 per sequence is the mode that multimodal data sets add.
  if (needed != array_bytes && (needed > array_bytes || array_bytes - needed != sequences)) {
    return Truncated(name,
                     absl::StrCat("the header promises ", sequences, " sequences and ", documents,
                                  " document indices, which do not fit the ", array_bytes, " bytes that follow it"));
  }
  index.sequences = static_cast<int64_t>(sequences);
  index.documents = static_cast<int64_t>(documents);
  index.sizes = file.data() + kMegatronHeaderBytes;
  index.pointers = index.sizes + sequences * 4;
  index.document_indices = index.pointers + sequences * 8;

  const size_t item = SizeOf(index.type);
  uint64_t end = 0;
  if (sequences > 0) {
    const int64_t first = Load<int64_t>(index.pointers);
    if (first != 0) return Invalid(name, absl::StrCat("the first sequence begins at byte ", first, ", not at 0"));
    const int32_t size = Load<int32_t>(index.sizes + (sequences - 1) * 4);
    const int64_t pointer = Load<int64_t>(index.pointers + (sequences - 1) * 8);
    if (size < 0 || pointer < 0) {
      return Invalid(name, absl::StrCat("the last sequence has size ", size, " and begins at byte ", pointer));
    }
    end = static_cast<uint64_t>(pointer) + static_cast<uint64_t>(size) * item;
  }
  if (end != token_bytes) {
    return Truncated(name, absl::StrCat("the sequences end at byte ", end, " but the .bin file beside it has ",
                                        token_bytes, " bytes"));
  }
  if (token_bytes % item != 0) {
    return Truncated(name, absl::StrCat("the .bin file's ", token_bytes, " bytes are no multiple of ", item,
                                        ", the size of a token"));
  }
  return index;
}

absl::Status CheckMegatronIndex(const MegatronIndex& index, const std::string& name) {
  const uint64_t item = SizeOf(index.type);
  uint64_t expected = 0;
  for (int64_t i = 0; i < index.sequences; ++i) {
    const int32_t size = Load<int32_t>(index.sizes + i * 4);
    const int64_t pointer = Load<int64_t>(index.pointers + i * 8);
    if (size < 0) return Invalid(name, absl::StrCat("sequence ", i, " has size ", size));
    if (static_cast<uint64_t>(pointer) != expected) {
      return Invalid(name, absl::StrCat("sequence ", i, " begins at byte ", pointer, " but the one before it ends at ",
                                        expected, "; make the index again"));
    }
    expected += static_cast<uint64_t>(size) * item;
  }
  int64_t previous = 0;
  for (int64_t i = 0; i < index.documents; ++i) {
    const int64_t document = Load<int64_t>(index.document_indices + i * 8);
    if (document < previous || document > index.sequences) {
      return Invalid(name, absl::StrCat("document index ", i, " is ", document, ", not between ", previous, " and ",
                                        index.sequences, "; make the index again"));
    }
    previous = document;
  }
  return absl::OkStatus();
}

}  // namespace bowline
