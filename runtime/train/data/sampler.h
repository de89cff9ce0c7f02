#ifndef BOWLINE_RUNTIME_TRAIN_DATA_SAMPLER_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/train/data/blend.h"
#include "runtime/train/data/dataset.h"

namespace bowline {

enum class DataOrder { kSequential, kShuffle };

absl::string_view NameOf(DataOrder order);  // "sequential"
absl::StatusOr<DataOrder> DataOrderFromName(absl::string_view name);

// A pseudorandom permutation of [0, size) that needs constant memory: a Feistel network over the next power of four (at
// least 64) with Philox4x32-10 as round function. It is iterated until the value falls inside [0, size) (Black and
// Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). The result depends only on (seed, epoch, index), not on
// ranks, batches or history.
class ShufflePermutation {
 public:
  // `size` is at least 1.
  ShufflePermutation(int64_t size, uint64_t seed);

  // Returns the value at `index`, in [0, size), of the permutation for `epoch`.
  int64_t operator()(uint64_t epoch, int64_t index) const;

 private:
  uint64_t Encrypt(uint64_t epoch, uint64_t value) const;

  uint64_t size_;
  uint64_t seed_;
  int half_bits_;
};

// Divides a dataset into samples of `sequence` tokens and chooses the samples of each training step.
//
// Let seq be `sequence`. Sample i is tokens[i*seq .. i*seq+seq], both ends included: the first seq are inputs, the last
// seq are labels. There are n = (tokens - 1) / seq samples; remaining tokens are unused. Draws are numbered from 0 over
// the whole run. Draw d takes sample d mod n in sequential order; in shuffled order, the permutation of epoch d / n
// applied to d mod n. Step s, from 0, of a run with global batch B takes draws s*B to s*B+B-1.
//
// Each file of a group is divided separately. Without weights, samples are numbered from file to file and all files
// form one epoch. With weights, a Blend maps a draw to a file and to a draw of that file alone, which then takes a
// sample as above. So a small file with a large weight goes through more epochs than the others.
class Sampler {
 public:
  // Does not own `dataset`. Returns kInvalidArgument, naming the file, if a file is too short for one sample.
  static absl::StatusOr<Sampler> Create(const TokenDataset* dataset, int64_t sequence, DataOrder order, uint64_t seed);

  // The number of samples in one epoch; with weights, the sum over all files.
  int64_t samples() const { return samples_; }
  int64_t sequence() const { return sequence_; }
  DataOrder order() const { return order_; }
  uint64_t seed() const { return seed_; }

  // Returns the sample of a draw, which is at least 0. Samples are numbered from file to file of the group.
  int64_t SampleOfDraw(int64_t draw) const;

  // Fills `tokens` and `labels`, each [batch, sequence] row-major, for `step` >= 0. No allocation unless it fails.
  absl::Status FillBatch(int64_t step, int64_t batch, int32_t* tokens, int32_t* labels) const;

  // Fills tokens and labels of draws first to first + count - 1, such as those of a microbatch
  // or of a rank's shard of a batch.
  absl::Status FillDraws(int64_t first, int64_t count, int32_t* tokens, int32_t* labels) const;

 private:
  // Samples [first, first + samples), which are drawn in one common order.
  struct Range {
    int64_t first, samples;
    ShufflePermutation permutation;
  };
  struct File {
    const TokenDataset* dataset;
    int64_t first;  // number of its first sample
  };

  Sampler(int64_t sequence, DataOrder order, uint64_t seed) : sequence_(sequence), order_(order), seed_(seed) {}

  absl::Status ReadSample(int64_t sample, int32_t* tokens, int32_t* labels) const;

  int64_t sequence_;
  int64_t samples_ = 0;
  DataOrder order_;
  uint64_t seed_;
  std::vector<File> files_;
  std::vector<Range> ranges_;   // one range; with a blend, one per file
  std::optional<Blend> blend_;  // chooses the range; absent without weights
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_SAMPLER_H_
