// Any bytes as a GGUF file: an error, or tensors whose rows can all be read.

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "runtime/base/gguf_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = bowline::GgufFile::FromBytes({data, size}, "fuzz.gguf");
  if (!file.ok()) return 0;
  for (const bowline::GgufTensor& tensor : file->tensors()) {
    if (file->Find(tensor.name) != &tensor) std::abort();
    std::vector<float> row(static_cast<size_t>(tensor.shape.back()));
    for (int64_t i = 0; i < tensor.elements / tensor.shape.back(); ++i) file->ReadRow(tensor, i, absl::MakeSpan(row));
  }
  const auto model = bowline::GgufModel::FromFile(*std::move(file));
  if (!model.ok()) return 0;
  for (const bowline::GgufModel::Tensor& tensor : model->tensors()) {
    std::vector<float> rows(static_cast<size_t>(tensor.stored->elements));
    model->ReadRows(tensor, 0, tensor.stored->elements / tensor.shape.back(), absl::MakeSpan(rows));
  }
  return 0;
}
