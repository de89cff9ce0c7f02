#include "runtime/train/checkpoint/saved_type.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/convert_elements.h"

namespace bowline {
namespace {

// Elements of type f32, read as another type.
class RoundedMemory : public TensorMemory {
 public:
  RoundedMemory(std::shared_ptr<TensorMemory> exact, ElementType type) : exact_(std::move(exact)), type_(type) {}

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> to) const override {
    const size_t count = to.size() / SizeOf(type_);
    std::vector<uint8_t> bytes(count * sizeof(float));
    BOWLINE_RETURN_IF_ERROR(exact_->Read(offset / SizeOf(type_) * sizeof(float), absl::MakeSpan(bytes)));
    Convert(ElementType::kF32, bytes, type_, to.data());
    return absl::OkStatus();
  }
  absl::Status Write(uint64_t /*offset*/, absl::Span<const uint8_t> /*from*/) override {
    return absl::InternalError("a rounded tensor is only read");
  }

 private:
  const std::shared_ptr<TensorMemory> exact_;
  const ElementType type_;
};

// The name that config.json has for a type; empty where it has none.
absl::string_view ConfigNameOf(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "float32";
    case ElementType::kBF16:
      return "bfloat16";
    case ElementType::kF16:
      return "float16";
    default:
      return "";
  }
}

}  // namespace

std::vector<CheckpointTensor> WithRoundedParameters(std::vector<CheckpointTensor> tensors, ElementType type) {
  std::vector<CheckpointTensor> exact;
  for (CheckpointTensor& tensor : tensors) {
    if (tensor.role != CheckpointRole::kParameter || !tensor.is_saved || tensor.type != ElementType::kF32) continue;
    exact.push_back(tensor);
    exact.back().key = absl::StrCat(kExactPrefix, tensor.key);
    exact.back().role = CheckpointRole::kOptimizer;
    tensor.type = type;
    if (tensor.memory != nullptr) tensor.memory = std::make_shared<RoundedMemory>(tensor.memory, type);
  }
  std::move(exact.begin(), exact.end(), std::back_inserter(tensors));
  return tensors;
}

std::string ConfigWithType(absl::string_view config_json, absl::Span<const CheckpointTensor> tensors) {
  std::map<ElementType, double> elements;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.role != CheckpointRole::kParameter || !tensor.is_saved) continue;
    double count = 1;
    for (const int64_t size : tensor.shape) count *= static_cast<double>(size);
    elements[tensor.type] += count;
  }
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(config_json, nullptr, /*allow_exceptions=*/false);
  std::string text(config_json);
  if (most == elements.end() || !config.is_object()) return text;
  const std::string name(ConfigNameOf(most->first));
  const bool says = config.contains("dtype") || config.contains("torch_dtype");
  if (name.empty() || (!says && most->first == ElementType::kF32)) return text;
  bool changed = false;
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (says && !config.contains(key)) continue;
    if (!says && std::string(key) == "dtype") continue;
    if (config.contains(key) && config[key] == name) continue;
    config[key] = name;
    changed = true;
  }
  if (!changed) return text;
  return config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace bowline
