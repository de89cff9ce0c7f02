#include "runtime/base/gguf.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/foreign_file.h"

namespace bowline {
namespace {

constexpr absl::string_view kGgufMagic = "GGUF";
constexpr uint64_t kMaxKeyBytes = 65535;  // the format's own limit
constexpr uint64_t kMaxNameBytes = 64;    // the format's own limit
constexpr uint32_t kMostDimensions = 4;   // the format's own limit
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = int64_t{1} << 20;
constexpr uint64_t kMaxTensors = uint64_t{1} << 20;
constexpr uint64_t kMaxKeys = uint64_t{1} << 16;

std::string Quoted(absl::string_view name) { return absl::StrCat("'", absl::Utf8SafeCHexEscape(name), "'"); }

// The bytes of a value of a type with one size; 0 for strings, arrays and unknown types.
uint64_t SizeOfValue(GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kI8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kU16:
    case GgufValueType::kI16:
      return 2;
    case GgufValueType::kU32:
    case GgufValueType::kI32:
    case GgufValueType::kF32:
      return 4;
    case GgufValueType::kU64:
    case GgufValueType::kI64:
    case GgufValueType::kF64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return 0;
}

// Takes one part of the file after the other.
class Cursor {
 public:
  Cursor(const std::string& path, absl::Span<const uint8_t> bytes) : path_(path), bytes_(bytes) {}

  uint64_t position() const { return position_; }

  absl::StatusOr<absl::Span<const uint8_t>> Take(uint64_t count, absl::string_view what) {
    if (count > bytes_.size() - position_) {
      return absl::DataLossError(absl::StrCat("'", path_, "': ", what, " at byte ", position_, " needs ", count,
                                              " bytes, but the file ends after ", bytes_.size() - position_,
                                              "; it is truncated or corrupt, fetch it again"));
    }
    const absl::Span<const uint8_t> taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  template <typename T>
  absl::StatusOr<T> Number(absl::string_view what) {
    BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> taken, Take(sizeof(T), what));
    T value;
    std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }

  absl::StatusOr<absl::Span<const uint8_t>> String(uint64_t limit, absl::string_view what) {
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t length, Number<uint64_t>(what));
    if (length > limit) {
      return Error(absl::StrCat(what, " has ", length, " bytes; at most ", limit, " are read"));
    }
    return Take(length, what);
  }

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "': ", what));
  }

 private:
  const std::string& path_;
  absl::Span<const uint8_t> bytes_;
  uint64_t position_ = 0;
};

absl::string_view TextOf(absl::Span<const uint8_t> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::StatusOr<GgufFile::Value> TakeValue(Cursor& cursor, absl::string_view key, absl::Span<const uint8_t> all) {
  const std::string what = absl::StrCat("the value of key ", Quoted(key));
  const auto is_type = [](uint32_t type) { return type <= static_cast<uint32_t>(GgufValueType::kF64); };
  BOWLINE_ASSIGN_OR_RETURN(const uint32_t type, cursor.Number<uint32_t>(what));
  if (!is_type(type)) return cursor.Error(absl::StrCat(what, " has the unknown type ", type, "; the file is corrupt"));
  GgufFile::Value value{static_cast<GgufValueType>(type), GgufValueType::kU8, 0, {}};
  if (value.type == GgufValueType::kString) {
    BOWLINE_ASSIGN_OR_RETURN(value.bytes, cursor.String(all.size(), what));
    return value;
  }
  if (value.type != GgufValueType::kArray) {
    BOWLINE_ASSIGN_OR_RETURN(value.bytes, cursor.Take(SizeOfValue(value.type), what));
    if (value.type == GgufValueType::kBool && value.bytes[0] > 1) {
      return cursor.Error(absl::StrCat(what, " should be 0 or 1, as it is a bool; the file is corrupt"));
    }
    return value;
  }
  BOWLINE_ASSIGN_OR_RETURN(const uint32_t element, cursor.Number<uint32_t>(what));
  BOWLINE_ASSIGN_OR_RETURN(value.count, cursor.Number<uint64_t>(what));
  if (!is_type(element) || element == static_cast<uint32_t>(GgufValueType::kArray)) {
    return cursor.Error(
        absl::StrCat(what, " is an array of type ", element, "; arrays of numbers, bools and strings are read"));
  }
  value.element_type = static_cast<GgufValueType>(element);
  const uint64_t begin = cursor.position();
  if (const uint64_t size = SizeOfValue(value.element_type); size != 0) {
    if (value.count > all.size() / size) {
      return cursor.Error(absl::StrCat(what, " has ", value.count, " elements, more than the file can hold; ",
                                       "it is truncated or corrupt, fetch it again"));
    }
    BOWLINE_RETURN_IF_ERROR(cursor.Take(value.count * size, what).status());
  } else {
    for (uint64_t i = 0; i < value.count; ++i) BOWLINE_RETURN_IF_ERROR(cursor.String(all.size(), what).status());
  }
  value.bytes = all.subspan(begin, cursor.position() - begin);
  return value;
}

absl::StatusOr<GgufTensor> TakeTensor(Cursor& cursor) {
  GgufTensor tensor;
  BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> name, cursor.String(kMaxNameBytes, "the name of a tensor"));
  tensor.name = std::string(TextOf(name));
  const std::string what = absl::StrCat("tensor ", Quoted(tensor.name));
  BOWLINE_ASSIGN_OR_RETURN(const uint32_t rank, cursor.Number<uint32_t>(what));
  if (rank == 0 || rank > kMostDimensions) {
    return cursor.Error(absl::StrCat(what, " has ", rank, " dimensions; 1 to ", kMostDimensions, " are read"));
  }
  uint64_t elements = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t size, cursor.Number<uint64_t>(what));
    if (size == 0 || size > INT64_MAX || __builtin_mul_overflow(elements, size, &elements) ||
        elements > INT64_MAX / 8) {
      return cursor.Error(absl::StrCat(what, ": its shape is empty or too large; the file is corrupt"));
    }
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
  }
  tensor.elements = static_cast<int64_t>(elements);
  BOWLINE_ASSIGN_OR_RETURN(const uint32_t type, cursor.Number<uint32_t>(what));
  BOWLINE_ASSIGN_OR_RETURN(tensor.offset, cursor.Number<uint64_t>(what));
  tensor.type = FindGgufType(type);
  if (tensor.type == nullptr) {
    return absl::InvalidArgumentError(cursor
                                          .Error(absl::StrCat(what, " has type ", NameOfGgufType(type),
                                                              ", which is not read; use a file with ", GgufTypeNames()))
                                          .message());
  }
  if (tensor.shape.back() % tensor.type->block_elements != 0) {
    return cursor.Error(absl::StrCat(what, " ", DescribeTensor(tensor), ": its rows are no multiple of the ",
                                     tensor.type->block_elements, " elements of a block; the file is corrupt"));
  }
  // At most 4 bytes per element: no overflow.
  tensor.bytes = elements / tensor.type->block_elements * tensor.type->block_bytes;
  return tensor;
}

}  // namespace

std::string DescribeTensor(const GgufTensor& tensor) {
  return absl::StrCat(tensor.type->name, " [", absl::StrJoin(tensor.shape, ", "), "]");
}

absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  GgufFile file;
  file.path_ = path;
  file.mapping_ = std::make_unique<MappedFile>(std::move(mapping));
  file.bytes_ = file.mapping_->bytes();
  BOWLINE_RETURN_IF_ERROR(file.Parse());
  return file;
}

absl::StatusOr<GgufFile> GgufFile::FromBytes(absl::Span<const uint8_t> bytes, const std::string& name) {
  GgufFile file;
  file.path_ = name;
  file.bytes_ = bytes;
  BOWLINE_RETURN_IF_ERROR(file.Parse());
  return file;
}

absl::Status GgufFile::Parse() {
  if (bytes_.empty()) return absl::DataLossError(absl::StrCat("'", path_, "' is empty; get a whole copy of it"));
  // A file that was cut off within the magic number is truncated.
  const bool may_begin = absl::StartsWith(kGgufMagic, TextOf(bytes_.subspan(0, kGgufMagic.size())));
  if (const std::string text = DescribeText(bytes_); !may_begin && !text.empty() && ForeignFormatOf(bytes_).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "' is no GGUF file; ", text));
  }
  Cursor cursor(path_, bytes_);
  BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> magic, cursor.Take(kGgufMagic.size(), "the magic number"));
  if (TextOf(magic) != kGgufMagic)
    return cursor.Error(absl::StrCat("does not begin with \"GGUF\"; this is no GGUF file", ForeignFormatNote(bytes_)));
  BOWLINE_ASSIGN_OR_RETURN(const uint32_t version, cursor.Number<uint32_t>("the version"));
  if (version != 2 && version != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path_, "': version ", version, " of GGUF is not read; versions 2 and 3, little-endian, are"));
  }
  BOWLINE_ASSIGN_OR_RETURN(const uint64_t tensors, cursor.Number<uint64_t>("the number of tensors"));
  BOWLINE_ASSIGN_OR_RETURN(const uint64_t keys, cursor.Number<uint64_t>("the number of keys"));
  if (tensors > kMaxTensors || keys > kMaxKeys) {
    return cursor.Error(absl::StrCat("has ", tensors, " tensors and ", keys, " keys; at most ", kMaxTensors, " and ",
                                     kMaxKeys, " are read"));
  }
  for (uint64_t i = 0; i < keys; ++i) {
    BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> key, cursor.String(kMaxKeyBytes, "a key"));
    BOWLINE_ASSIGN_OR_RETURN(const Value value, TakeValue(cursor, TextOf(key), bytes_));
    if (!metadata_.emplace(TextOf(key), value).second) {
      return cursor.Error(absl::StrCat("has the key ", Quoted(TextOf(key)), " twice; the file is corrupt"));
    }
  }
  for (uint64_t i = 0; i < tensors; ++i) {
    BOWLINE_ASSIGN_OR_RETURN(GgufTensor tensor, TakeTensor(cursor));
    tensors_.push_back(std::move(tensor));
  }
  return CheckLayout(cursor.position());
}

absl::Status GgufFile::CheckLayout(uint64_t data_begin) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "': ", what));
  };
  int64_t alignment = kDefaultAlignment;
  if (Has("general.alignment")) {
    BOWLINE_ASSIGN_OR_RETURN(alignment, Integer("general.alignment"));
  }
  if (alignment < 8 || alignment > kMaxAlignment || alignment % 8 != 0) {
    return error(absl::StrCat("\"general.alignment\" = ", alignment, " is not a multiple of 8 up to ", kMaxAlignment));
  }
  const auto align = static_cast<uint64_t>(alignment);
  data_begin = (data_begin + align - 1) / align * align;
  for (GgufTensor& tensor : tensors_) {
    const std::string what = absl::StrCat("tensor ", Quoted(tensor.name));
    if (tensor.offset % align != 0) {
      return error(absl::StrCat(what, ": its offset ", tensor.offset, " is no multiple of ", align));
    }
    uint64_t end;
    if (__builtin_add_overflow(tensor.offset, data_begin, &tensor.offset) ||
        __builtin_add_overflow(tensor.offset, tensor.bytes, &end) || end > bytes_.size()) {
      return absl::DataLossError(absl::StrCat("'", path_, "': ", what, " ", DescribeTensor(tensor),
                                              " lies beyond the end of the file of ", bytes_.size(),
                                              " bytes; it is truncated, fetch it again"));
    }
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const GgufTensor& a, const GgufTensor& b) {
    return std::tie(a.offset, a.name) < std::tie(b.offset, b.name);
  });
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!index_.emplace(tensors_[i].name, i).second) {
      return error(absl::StrCat("has the tensor ", Quoted(tensors_[i].name), " twice; the file is corrupt"));
    }
    if (i > 0 && tensors_[i - 1].offset + tensors_[i - 1].bytes > tensors_[i].offset) {
      return error(absl::StrCat("the data of tensor ", Quoted(tensors_[i].name), " overlaps that of tensor ",
                                Quoted(tensors_[i - 1].name), "; the file is corrupt, fetch it again"));
    }
  }
  return absl::OkStatus();
}

const GgufTensor* GgufFile::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

absl::StatusOr<const GgufFile::Value*> GgufFile::Get(absl::string_view key) const {
  const auto found = metadata_.find(key);
  if (found != metadata_.end()) return &found->second;
  return absl::NotFoundError(absl::StrCat("'", path_, "': the key \"", key, "\" is missing; use a complete GGUF file"));
}

absl::Status GgufFile::WrongType(absl::string_view key, absl::string_view expected) const {
  return absl::InvalidArgumentError(absl::StrCat("'", path_, "': the value of key \"", key, "\" should be ", expected));
}

absl::StatusOr<int64_t> GgufFile::Integer(absl::string_view key) const {
  BOWLINE_ASSIGN_OR_RETURN(const Value* const value, Get(key));
  bool is_signed = false;
  switch (value->type) {
    case GgufValueType::kI8:
    case GgufValueType::kI16:
    case GgufValueType::kI32:
    case GgufValueType::kI64:
      is_signed = true;
      break;
    case GgufValueType::kU8:
    case GgufValueType::kU16:
    case GgufValueType::kU32:
    case GgufValueType::kU64:
      break;
    default:
      return WrongType(key, "one integer");
  }
  uint64_t bits = 0;
  std::memcpy(&bits, value->bytes.data(), value->bytes.size());
  const unsigned unused = 64 - 8 * static_cast<unsigned>(value->bytes.size());
  if (is_signed) return static_cast<int64_t>(bits << unused) >> unused;
  if (bits > INT64_MAX) return WrongType(key, "an integer of at most 63 bits");
  return static_cast<int64_t>(bits);
}

absl::StatusOr<double> GgufFile::Number(absl::string_view key) const {
  BOWLINE_ASSIGN_OR_RETURN(const Value* const value, Get(key));
  if (value->type == GgufValueType::kF32) {
    float number;
    std::memcpy(&number, value->bytes.data(), sizeof(number));
    return number;
  }
  if (value->type == GgufValueType::kF64) {
    double number;
    std::memcpy(&number, value->bytes.data(), sizeof(number));
    return number;
  }
  return WrongType(key, "one floating-point number");
}

absl::StatusOr<bool> GgufFile::Boolean(absl::string_view key) const {
  BOWLINE_ASSIGN_OR_RETURN(const Value* const value, Get(key));
  if (value->type != GgufValueType::kBool) return WrongType(key, "a bool");
  return value->bytes[0] != 0;
}

absl::StatusOr<absl::string_view> GgufFile::String(absl::string_view key) const {
  BOWLINE_ASSIGN_OR_RETURN(const Value* const value, Get(key));
  if (value->type != GgufValueType::kString) return WrongType(key, "a string");
  return TextOf(value->bytes);
}

void GgufFile::ReadRow(const GgufTensor& tensor, int64_t row, absl::Span<float> out) const {
  const uint64_t row_bytes = out.size() / tensor.type->block_elements * tensor.type->block_bytes;
  ReadGgufBlocks(*tensor.type, Bytes(tensor).subspan(static_cast<uint64_t>(row) * row_bytes, row_bytes), out);
}

}  // namespace bowline
