// Any bytes as a safetensors file: an error, or tensors that can all be read.

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "runtime/base/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = bowline::SafetensorsFile::FromBytes({data, size}, "fuzz.safetensors");
  if (!file.ok()) return 0;
  for (const bowline::SafetensorsTensor& tensor : file->tensors()) {
    if (file->Find(tensor.name) != &tensor) std::abort();
    std::vector<float> whole(static_cast<size_t>(tensor.elements));
    if (!file->ReadF32(tensor, absl::MakeSpan(whole)).ok()) std::abort();
    // The second half along every dimension.
    std::vector<int64_t> starts, sizes;
    size_t count = 1;
    for (int64_t dimension : tensor.shape) {
      starts.push_back(dimension / 2);
      sizes.push_back(tensor.elements == 0 ? 0 : dimension - dimension / 2);
      count *= static_cast<size_t>(sizes.back());
    }
    if (tensor.elements == 0) count = tensor.shape.empty() ? 1 : 0;
    std::vector<float> slice(count);
    if (!file->ReadSliceF32(tensor, starts, sizes, absl::MakeSpan(slice)).ok()) std::abort();
  }
  return 0;
}
