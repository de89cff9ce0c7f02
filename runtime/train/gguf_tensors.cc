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
      tensors_.push_back({tensor.key, ElementType::kF32, tensor.stored->shape, tensor.stored->elements, path_});
    }
  }

  absl::StatusOr<absl::Span<const uint8_t>> BytesFrom(const Tensor& tensor, int64_t first) override {
    constexpr int64_t kElementsAtOnce = int64_t{1} << 18;
    const int64_t width = tensor.shape.back(), row = first / width;
    if (current_ != &tensor || row < begin_ || row >= end_) {
      const GgufModel::Tensor& stored = model_.tensors()[static_cast<size_t>(&tensor - tensors_.data())];
      current_ = &tensor;
      begin_ = row;
      end_ = std::min(tensor.elements / width, row + std::max<int64_t>(1, kElementsAtOnce / width));
      rows_.resize(static_cast<size_t>((end_ - begin_) * width));
      for (int64_t i = begin_; i < end_; ++i) {
        model_.ReadRow(
            stored, i,
            absl::MakeSpan(rows_).subspan(static_cast<size_t>((i - begin_) * width), static_cast<size_t>(width)));
      }
    }
    const absl::Span<const float> rest =
        absl::MakeConstSpan(rows_).subspan(static_cast<size_t>(first - begin_ * width));
    return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(rest.data()), rest.size() * sizeof(float));
  }
  bool KeepsBytes() const override { return false; }

 private:
  GgufModel model_;
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
