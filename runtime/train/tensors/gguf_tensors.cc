#include "runtime/train/tensors/gguf_tensors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/gguf_model.h"

namespace bowline {
namespace {

// Blocks and floats keep the bytes of the file. A tensor stored in another type but read as f32 is converted into a
// buffer, some rows at a time.
class GgufTensors : public StoredTensors {
 public:
  explicit GgufTensors(GgufModel model) : StoredTensors(model.file().path()), model_(std::move(model)) {
    for (const GgufModel::Tensor& tensor : model_.tensors()) {
      const bool is_kept = InfoOf(FormatOf(tensor)).kind == ElementKind::kFloat && !tensor.is_transposed;
      const ElementType type = is_kept ? FormatOf(tensor) : ElementType::kF32;
      tensors_.push_back({tensor.key, type, tensor.shape, tensor.stored->elements, path_});
      blocks_.push_back(BlocksOf(tensor));
    }
  }

  const Tensor* FindBlocks(absl::string_view key, ElementType& format) const override {
    const Tensor* tensor = Find(key);
    if (tensor == nullptr) return nullptr;
    const size_t index = static_cast<size_t>(tensor - tensors_.data());
    if (blocks_[index].shape.empty()) return nullptr;
    format = FormatOf(model_.tensors()[index]);
    return &blocks_[index];
  }

  absl::StatusOr<absl::Span<const uint8_t>> BytesFrom(const Tensor& tensor, int64_t first) override {
    const GgufModel::Tensor& stored = StoredOf(tensor);
    const int64_t width = IsInBlocks(tensor) ? tensor.shape[1] * tensor.shape[2] : tensor.shape.back();
    const int64_t row = first / width;
    if (KeepsBytes(tensor)) {
      return model_.StoredBytes(stored, row).subspan(static_cast<size_t>(first % width) * SizeOf(tensor.type));
    }
    if (current_ != &tensor || row < begin_ || row >= end_) {
      // Any rows of a transposed tensor take as long as all of them.
      const int64_t at_once = int64_t{1} << (stored.is_transposed ? 24 : 18);
      current_ = &tensor;
      begin_ = row;
      end_ = std::min(tensor.elements / width, row + std::max<int64_t>(1, at_once / width));
      rows_.resize(static_cast<size_t>((end_ - begin_) * width));
      model_.ReadRows(stored, begin_, end_ - begin_, absl::MakeSpan(rows_));
    }
    const absl::Span<const float> rest =
        absl::MakeConstSpan(rows_).subspan(static_cast<size_t>(first - begin_ * width));
    return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(rest.data()), rest.size() * sizeof(float));
  }
  bool KeepsBytes(const Tensor& tensor) const override {
    const GgufModel::Tensor& stored = StoredOf(tensor);
    return IsInBlocks(tensor) || (FormatOf(stored) == tensor.type && !stored.is_transposed);
  }

 private:
  bool IsInBlocks(const Tensor& tensor) const {
    return &tensor >= blocks_.data() && &tensor < blocks_.data() + blocks_.size();
  }
  const GgufModel::Tensor& StoredOf(const Tensor& tensor) const {
    const Tensor* first = IsInBlocks(tensor) ? blocks_.data() : tensors_.data();
    return model_.tensors()[static_cast<size_t>(&tensor - first)];
  }

  static ElementType FormatOf(const GgufModel::Tensor& tensor) {
    // Opening the file has refused types that are not known.
    return ElementTypeFromGguf(static_cast<int>(tensor.stored->type->number)).value_or(ElementType::kF32);
  }

  // Without a shape where the tensor is no matrix in blocks.
  Tensor BlocksOf(const GgufModel::Tensor& tensor) const {
    Tensor blocks = {tensor.key, ElementType::kU8, {}, 0, path_};
    const ElementTypeInfo& format = InfoOf(FormatOf(tensor));
    if (format.kind != ElementKind::kQuantized || tensor.stored->shape.size() != 2) return blocks;
    blocks.shape = {tensor.stored->shape[0], tensor.stored->shape[1] / format.block_elements, format.block_bytes};
    blocks.elements = static_cast<int64_t>(tensor.stored->bytes);
    return blocks;
  }

  GgufModel model_;
  std::vector<Tensor> blocks_;  // in the order of tensors_
  const Tensor* current_ = nullptr;
  int64_t begin_ = 0, end_ = 0;  // the rows of the current tensor that are in rows_
  std::vector<float> rows_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StoredTensors>> OpenGgufTensors(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(GgufModel model, GgufModel::Open(path));
  return std::make_unique<GgufTensors>(std::move(model));
}

}  // namespace bowline
