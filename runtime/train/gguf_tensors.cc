#include "runtime/train/gguf_tensors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/gguf_model.h"

namespace bowline {
namespace {

// Converts some rows at a time into a buffer.
class GgufTensors : public StoredTensors {
 public:
  explicit GgufTensors(GgufModel model) : StoredTensors(model.file().path()), model_(std::move(model)) {
    for (const GgufModel::Tensor& tensor : model_.tensors()) {
      tensors_.push_back({tensor.key, ElementType::kF32, tensor.shape, tensor.stored->elements, path_});
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
    if (&tensor >= blocks_.data() && &tensor < blocks_.data() + blocks_.size()) {
      const GgufModel::Tensor& stored = model_.tensors()[static_cast<size_t>(&tensor - blocks_.data())];
      const int64_t width = tensor.shape[1] * tensor.shape[2];
      return model_.RowBytes(stored, first / width).subspan(static_cast<size_t>(first % width));
    }
    const int64_t width = tensor.shape.back(), row = first / width;
    if (current_ != &tensor || row < begin_ || row >= end_) {
      const GgufModel::Tensor& stored = model_.tensors()[static_cast<size_t>(&tensor - tensors_.data())];
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
  bool KeepsBytes() const override { return false; }

 private:
  static ElementType FormatOf(const GgufModel::Tensor& tensor) {
    for (const ElementTypeInfo& info : kElementTypes) {
      if (info.gguf == static_cast<int>(tensor.stored->type->number)) return info.type;
    }
    return ElementType::kF32;
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
