#include "runtime/base/safetensors.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "runtime/base/convert_elements.h"
#include "runtime/base/foreign_file.h"
#include "runtime/base/json.h"

namespace bowline {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxRank = 64;

// Parses the value of one key of the header. `file_size` and `data_begin` turn its offsets into checked file positions.
class TensorParser {
 public:
  TensorParser(const std::string& path, uint64_t data_begin, uint64_t data_bytes)
      : path_(path), data_begin_(data_begin), data_bytes_(data_bytes) {}

  absl::StatusOr<SafetensorsTensor> Parse(const std::string& name, const json& value) const {
    SafetensorsTensor tensor;
    tensor.name = name;
    if (!value.is_object()) return Error(name, absl::StrCat("should be an object but is ", DescribeJsonType(value)));
    for (const auto& [key, unused] : value.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return Error(name, absl::StrCat("unknown key \"", key, "\"; the format has dtype, shape and data_offsets"));
      }
    }
    BOWLINE_RETURN_IF_ERROR(ParseType(value, &tensor));
    BOWLINE_RETURN_IF_ERROR(ParseShape(value, &tensor));
    BOWLINE_RETURN_IF_ERROR(ParseOffsets(value, &tensor));
    return tensor;
  }

 private:
  absl::Status Error(const std::string& name, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "': tensor '", name, "': ", what));
  }

  absl::Status ParseType(const json& value, SafetensorsTensor* tensor) const {
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) return Error(tensor->name, "\"dtype\" should be a string");
    const auto& type_name = dtype->get_ref<const std::string&>();
    const auto type = ElementTypeFromSafetensors(type_name);
    if (!type) {
      return Error(tensor->name,
                   absl::StrCat("dtype \"", type_name, "\" is not supported; supported are ", SafetensorsTypeNames()));
    }
    tensor->type = *type;
    return absl::OkStatus();
  }

  absl::Status ParseShape(const json& value, SafetensorsTensor* tensor) const {
    const auto shape = value.find("shape");
    if (shape == value.end() || !shape->is_array()) return Error(tensor->name, "\"shape\" should be an array");
    if (shape->size() > kMaxRank) {
      return Error(tensor->name, absl::StrCat("has ", shape->size(), " dimensions; at most ", kMaxRank, " are read"));
    }
    uint64_t elements = 1;
    bool overflow = false;
    bool has_zero = false;
    for (const json& dimension : *shape) {
      if (!dimension.is_number_unsigned() || dimension.get<uint64_t>() > INT64_MAX) {
        return Error(tensor->name, "\"shape\" should hold integers from 0 on");
      }
      const uint64_t size = dimension.get<uint64_t>();
      has_zero |= size == 0;
      overflow |= __builtin_mul_overflow(elements, std::max<uint64_t>(size, 1), &elements);
      tensor->shape.push_back(static_cast<int64_t>(size));
    }
    uint64_t bytes = 0;
    overflow |= __builtin_mul_overflow(elements, SizeOf(tensor->type), &bytes);
    if (overflow || bytes > INT64_MAX) {
      return Error(tensor->name, "the shape's number of bytes does not fit into 63 bits");
    }
    tensor->elements = has_zero ? 0 : static_cast<int64_t>(elements);
    tensor->bytes = has_zero ? 0 : bytes;
    return absl::OkStatus();
  }

  absl::Status ParseOffsets(const json& value, SafetensorsTensor* tensor) const {
    const auto offsets = value.find("data_offsets");
    if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
        !(*offsets)[1].is_number_unsigned()) {
      return Error(tensor->name, "\"data_offsets\" should be an array of two integers from 0 on");
    }
    const uint64_t begin = (*offsets)[0].get<uint64_t>();
    const uint64_t end = (*offsets)[1].get<uint64_t>();
    const std::string range = absl::StrCat("data_offsets [", begin, ", ", end, "]");
    if (begin > end) return Error(tensor->name, absl::StrCat(range, " run backwards"));
    if (end - begin != tensor->bytes) {
      return Error(tensor->name, absl::StrCat(range, " hold ", end - begin, " bytes, but ",
                                              DescribeTensor(tensor->type, tensor->shape), " needs ", tensor->bytes));
    }
    if (end > data_bytes_) {
      return absl::DataLossError(absl::StrCat("'", path_, "': tensor '", tensor->name, "': ", range,
                                              " lie beyond the end of the file, which has ", data_bytes_,
                                              " bytes of data; the file is truncated, get a whole copy of it"));
    }
    tensor->offset = data_begin_ + begin;
    return absl::OkStatus();
  }

  const std::string& path_;
  uint64_t data_begin_;
  uint64_t data_bytes_;
};

// The tensors, sorted by offset, must cover [begin, end) exactly.
absl::Status CheckCoverage(const std::string& path, absl::Span<const SafetensorsTensor> tensors, uint64_t begin,
                           uint64_t end) {
  const SafetensorsTensor* previous = nullptr;
  uint64_t position = begin;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.offset < position) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "': the data of tensor '", tensor.name,
                                                     "' overlaps that of tensor '", previous->name,
                                                     "'; the file is corrupt, fetch or write it again"));
    }
    if (tensor.offset > position) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", tensor.offset - position,
                                                     " bytes before the data of tensor '", tensor.name,
                                                     "' belong to no tensor; the format allows no holes"));
    }
    position += tensor.bytes;
    previous = &tensor;
  }
  if (position != end) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", end - position,
                                                   " bytes at the end belong to no tensor; the file is corrupt, "
                                                   "fetch or write it again"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string DescribeTensor(ElementType type, absl::Span<const int64_t> shape) {
  return absl::StrCat(absl::AsciiStrToUpper(NameOf(type)), " [", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  SafetensorsFile file;
  file.path_ = path;
  file.mapping_ = std::make_unique<MappedFile>(std::move(mapping));
  file.bytes_ = file.mapping_->bytes();
  BOWLINE_RETURN_IF_ERROR(file.Parse());
  return file;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::FromBytes(absl::Span<const uint8_t> bytes, const std::string& name) {
  SafetensorsFile file;
  file.path_ = name;
  file.bytes_ = bytes;
  BOWLINE_RETURN_IF_ERROR(file.Parse());
  return file;
}

absl::Status SafetensorsFile::Parse() {
  const uint64_t file_size = bytes_.size();
  const absl::string_view format = ForeignFormatOf(bytes_);
  const bool is_foreign = !format.empty() && format != kSafetensorsFormat;
  if (file_size == 0) return absl::DataLossError(absl::StrCat("'", path_, "' is empty; get a whole copy of it"));
  if (const std::string text = DescribeText(bytes_); !text.empty() && !is_foreign) {
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "' is no safetensors file; ", text));
  }
  if (file_size < kLengthBytes) {
    return absl::DataLossError(absl::StrCat("'", path_, "' has ", file_size,
                                            " bytes; a safetensors file begins with an 8-byte header length; the file "
                                            "is truncated or of another format"));
  }
  uint64_t header_bytes;
  std::memcpy(&header_bytes, bytes_.data(), kLengthBytes);
  const bool has_header =
      header_bytes > 0 && header_bytes <= file_size - kLengthBytes && bytes_[kLengthBytes] == uint8_t{'{'};
  if (is_foreign && !has_header) {
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "' is no safetensors file; ", format));
  }
  if (header_bytes > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("'", path_, "': header length ", header_bytes,
                                                   " is above the limit ", kMaxHeaderBytes,
                                                   "; this is no safetensors file, or a corrupt one"));
  }
  if (header_bytes > file_size - kLengthBytes) {
    return absl::DataLossError(absl::StrCat("'", path_, "': header length ", header_bytes, " runs beyond the file of ",
                                            file_size, " bytes; the file is truncated, get a whole copy of it"));
  }
  const absl::string_view header(reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes, header_bytes);
  if (header.empty() || header.front() != '{') {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path_, "': the header does not begin with '{'; this is no safetensors file"));
  }
  // {"name": {"shape": [...]}} is three deep.
  BOWLINE_ASSIGN_OR_RETURN(const json document,
                           ParseJson(header, absl::StrCat("'", path_, "': header"), {.max_depth = 3}));

  const uint64_t data_begin = kLengthBytes + header_bytes;
  const TensorParser parser(path_, data_begin, file_size - data_begin);
  for (const auto& [name, value] : document.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) {
        return absl::InvalidArgumentError(absl::StrCat("'", path_, "': \"__metadata__\" should be an object"));
      }
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) {
          return absl::InvalidArgumentError(
              absl::StrCat("'", path_, "': \"__metadata__\": the value of \"", key, "\" should be a string"));
        }
        metadata_[key] = text.get_ref<const std::string&>();
      }
      continue;
    }
    BOWLINE_ASSIGN_OR_RETURN(SafetensorsTensor tensor, parser.Parse(name, value));
    tensors_.push_back(std::move(tensor));
  }
  // Empty tensors go before a neighbour at the same offset.
  std::sort(tensors_.begin(), tensors_.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  for (size_t i = 0; i < tensors_.size(); ++i) index_[tensors_[i].name] = i;
  return CheckCoverage(path_, tensors_, data_begin, file_size);
}

const SafetensorsTensor* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

absl::Status SafetensorsFile::ReadF32(const SafetensorsTensor& tensor, absl::Span<float> out) const {
  if (out.size() != static_cast<uint64_t>(tensor.elements)) {
    return absl::InternalError(absl::StrCat("'", path_, "': tensor '", tensor.name, "' has ", tensor.elements,
                                            " elements but the buffer to read it into has ", out.size()));
  }
  ConvertToF32(tensor.type, bytes_.data() + tensor.offset, out);
  return absl::OkStatus();
}

absl::Status SafetensorsFile::ReadSliceF32(const SafetensorsTensor& tensor, absl::Span<const int64_t> starts,
                                           absl::Span<const int64_t> sizes, absl::Span<float> out) const {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path_, "': tensor '", tensor.name, "' ", DescribeTensor(tensor.type, tensor.shape), ": slice from [",
        absl::StrJoin(starts, ", "), "] of size [", absl::StrJoin(sizes, ", "), "] ", what));
  };
  const size_t rank = tensor.shape.size();
  if (starts.size() != rank || sizes.size() != rank) return error("has another number of dimensions");
  uint64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (starts[d] < 0 || sizes[d] < 0 || starts[d] > tensor.shape[d] || sizes[d] > tensor.shape[d] - starts[d]) {
      return error("reaches outside of the tensor");
    }
    elements *= static_cast<uint64_t>(sizes[d]);
  }
  if (tensor.elements == 0) elements = 0;
  if (out.size() != elements) return error(absl::StrCat("does not fit the buffer of ", out.size(), " elements"));
  if (elements == 0) return absl::OkStatus();

  // Trailing dimensions that are taken whole, and the one before them, are contiguous in the file: one run.
  size_t run_rank = rank;
  int64_t run = 1;
  while (run_rank > 0) {
    --run_rank;
    run *= sizes[run_rank];
    if (sizes[run_rank] != tensor.shape[run_rank]) break;
  }
  std::vector<int64_t> strides(rank, 1);
  for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * tensor.shape[d];
  std::vector<int64_t> position(starts.begin(), starts.end());
  for (uint64_t written = 0; written < elements; written += static_cast<uint64_t>(run)) {
    int64_t element = 0;
    for (size_t d = 0; d < rank; ++d) element += position[d] * strides[d];
    ConvertToF32(tensor.type, bytes_.data() + tensor.offset + static_cast<uint64_t>(element) * SizeOf(tensor.type),
                 out.subspan(written, static_cast<size_t>(run)));
    for (size_t d = run_rank; d-- > 0;) {
      if (++position[d] < starts[d] + sizes[d]) break;
      position[d] = starts[d];
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
