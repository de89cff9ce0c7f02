// Any bytes as a token file: an error, or tokens that can all be read or refused. The first byte chooses: 0 for llm.c
// and .npy; else a Megatron index of all bytes but the last 2 * that many, which are its .bin file.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/train/data/dataset.h"
#include "runtime/train/data/sampler.h"

namespace {

void Exercise(const bowline::TokenDataset& dataset) {
  dataset.CheckIndex().IgnoreError();
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.size()));
  const bool can_be_read = dataset.Read(0, dataset.size(), tokens.data()).ok();
  if (can_be_read != dataset.CheckTokens(0, dataset.size()).ok()) std::abort();
  if (!can_be_read && !dataset.MayBeOutside()) std::abort();
  if (can_be_read) {
    for (int32_t token : tokens) {
      if (token < 0 || token >= 50257 || token > dataset.max_possible_id()) std::abort();
    }
  }
  if (dataset.Read(dataset.size(), 1, nullptr).ok()) std::abort();
  const auto sampler = bowline::Sampler::Create(&dataset, 3, bowline::DataOrder::kShuffle, 1);
  if (!sampler.ok()) return;
  int32_t inputs[6], labels[6];
  sampler->FillBatch(0, 2, inputs, labels).IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bowline::DatasetOptions options = {.vocabulary = 50257};
  const absl::Span<const uint8_t> rest(data + 1, size - 1);
  if (data[0] == 0) {
    const auto dataset = bowline::TokenDatasetFromBytes(rest, "fuzz.bin", options);
    if (dataset.ok()) Exercise(**dataset);
  } else {
    const size_t token_bytes = std::min<size_t>(rest.size(), 2 * size_t{data[0]});
    const size_t index_bytes = rest.size() - token_bytes;
    const auto dataset =
        bowline::MegatronDatasetFromBytes(rest.first(index_bytes), rest.subspan(index_bytes), "fuzz.idx", options);
    if (dataset.ok()) Exercise(**dataset);
  }
  return 0;
}
