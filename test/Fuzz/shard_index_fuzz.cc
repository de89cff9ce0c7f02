// Any bytes as the index of a checkpoint of several ranks: an error, or parts that hold every element.

#include <cstdint>
#include <cstdlib>

#include "runtime/train/tensors/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = bowline::ShardIndexFromJson({reinterpret_cast<const char*>(data), size}, "shards.json");
  if (!index.ok()) return 0;
  for (const bowline::ShardIndex::Tensor& tensor : index->tensors) {
    const bowline::TensorDivision& storage = tensor.sharded.storage();
    // Some elements, however many there are.
    const int64_t step = storage.elements() / 64 + 1;
    for (int64_t element = 0; element < storage.elements(); element += step) {
      const auto found = storage.Locate(element);
      const int64_t rank = tensor.sharded.RankAt(found.place);
      if (found.count < 1 || found.offset < 0 || rank < 0 || rank >= index->mesh.ranks()) std::abort();
      if (found.offset + found.count > storage.StoredElements(found.place)) std::abort();
      if (tensor.sharded.StoragePlace(rank) != found.place || !tensor.sharded.HasRole(rank)) std::abort();
    }
  }
  return 0;
}
