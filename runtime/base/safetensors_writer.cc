#include "runtime/base/safetensors_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/safetensors.h"

namespace bowline {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kDataAlignment = 64;

bool Before(const SafetensorsSpec& a, const SafetensorsSpec& b) {
  const size_t size_a = SizeOf(a.type);
  const size_t size_b = SizeOf(b.type);
  return size_a != size_b ? size_a > size_b : a.name < b.name;
}

}  // namespace

absl::StatusOr<uint64_t> TensorBytes(ElementType type, absl::Span<const int64_t> shape) {
  uint64_t bytes = SizeOf(type);
  bool overflow = false;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat(DescribeTensor(type, shape), " has a negative size"));
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(size, 1)), &bytes);
  }
  if (overflow || bytes > INT64_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(DescribeTensor(type, shape), " does not fit into 63 bits of bytes"));
  }
  return empty ? 0 : bytes;
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                            std::vector<SafetensorsSpec> tensors,
                                                            const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), Before);
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::map<std::string, bool> seen{{"__metadata__", true}};
  uint64_t position = 0;
  for (const SafetensorsSpec& tensor : tensors) {
    if (!seen.emplace(tensor.name, true).second) {
      return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "': the tensor name '", tensor.name,
                                                     "' is used twice or reserved; give each tensor its own name"));
    }
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(tensor.type, tensor.shape));
    if (bytes > INT64_MAX - position) {
      return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "': the tensors exceed 63 bits of bytes"));
    }
    ordered_json entry = ordered_json::object();
    entry["dtype"] = std::string(InfoOf(tensor.type).safetensors);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {position, position + bytes};
    // push_back: assigning by key would search all earlier keys of an ordered object.
    header.get_ref<ordered_json::object_t&>().emplace_back(tensor.name, std::move(entry));
    position += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const std::exception& error) {  // a name that is no UTF-8
    return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "': ", error.what()));
  }
  while ((sizeof(uint64_t) + text.size()) % kDataAlignment != 0) text.push_back(' ');
  if (text.size() > SafetensorsFile::kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "': the header would have ", text.size(),
                                                   " bytes; the format allows ", SafetensorsFile::kMaxHeaderBytes));
  }

  BOWLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const uint64_t length = text.size();
  BOWLINE_RETURN_IF_ERROR(file.Append({reinterpret_cast<const uint8_t*>(&length), sizeof(length)}));
  BOWLINE_RETURN_IF_ERROR(file.Append(text));
  const uint64_t expected_size = file.size() + position;
  return SafetensorsWriter(std::move(file), std::move(tensors), expected_size);
}

absl::Status SafetensorsWriter::Finish() {
  if (file_.size() != expected_size_) {
    return absl::InternalError(absl::StrCat("cannot complete '", file_.path(), "': it has ", file_.size(),
                                            " bytes but its header promises ", expected_size_));
  }
  return file_.Commit();
}

absl::Status WriteSafetensors(const std::string& path, absl::Span<const SafetensorsSource> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsSpec> specs;
  std::map<std::string, const void*> data;
  for (const SafetensorsSource& tensor : tensors) {
    specs.push_back(tensor.spec);
    data[tensor.spec.name] = tensor.data;
  }
  BOWLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, std::move(specs), metadata));
  for (const SafetensorsSpec& spec : writer.order()) {
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(spec.type, spec.shape));
    BOWLINE_RETURN_IF_ERROR(writer.Append({static_cast<const uint8_t*>(data[spec.name]), bytes}));
  }
  return writer.Finish();
}

}  // namespace bowline
