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

// A pseudorandom permutation of [0, size) in constant memory: a Feistel network over the next power of four (64 at
// least), whose round function is Philox4x32-10, walked until it lands inside [0, size) (Black and Rogaway, "Ciphers
// with Arbitrary Finite Domains", 2002). A pure function of (seed, epoch, index), hence independent of ranks, batches
// and history.
class ShufflePermutation {
 public:
  // `size` is at least 1.
  ShufflePermutation(int64_t size, uint64_t seed);

  // Returns the place of `index` in [0, size) in the permutation of `epoch`.
  int64_t operator()(uint64_t epoch, int64_t index) const;

 private:
  uint64_t Encrypt(uint64_t epoch, uint64_t value) const;

  uint64_t size_;
  uint64_t seed_;
  int half_bits_;
};

// Divides a dataset into samples of `sequence` tokens and chooses those that a step trains on.
//
// Sample i is tokens[i*seq .. i*seq+seq] (both ends): inputs are the first seq, labels the last seq. There are
// n = (tokens - 1) / seq samples; the rest of the file is not used. Draw d (from 0, over the whole run)
// takes sample d mod n in sequential order, or the permutation of epoch d / n applied to d mod n in shuffled order.
// Step s (from 0) of a run with the global batch B takes the draws s*B .. s*B+B-1.
//
// Each file of a group is divided by itself. Without weights its samples follow those of the file before it, and all
// together are one epoch. With weights a Blend says from which file a draw is, and the how many-th of that file it is,
// whose sample it takes as above from the file alone: a small file with a large weight has more epochs than others.
class Sampler {
 public:
  // `dataset` is not owned. kInvalidArgument, naming the file, when one is too short for one sample.
  static absl::StatusOr<Sampler> Create(const TokenDataset* dataset, int64_t sequence, DataOrder order, uint64_t seed);

  // The number of samples in an epoch; of a blend, that of all its files.
  int64_t samples() const { return samples_; }
  int64_t sequence() const { return sequence_; }
  DataOrder order() const { return order_; }
  uint64_t seed() const { return seed_; }

  // The sample of a draw >= 0; those of a file count from the number of samples of the files before it.
  int64_t SampleOfDraw(int64_t draw) const;

  // Fills `tokens` and `labels`, each [batch, sequence] row-major, for `step` >= 0. No allocation unless it fails.
  absl::Status FillBatch(int64_t step, int64_t batch, int32_t* tokens, int32_t* labels) const;

  // Fills tokens and labels of the draws first ... first + count - 1, such as those of a microbatch or of a rank's
  // shard of a batch.
  absl::Status FillDraws(int64_t first, int64_t count, int32_t* tokens, int32_t* labels) const;

 private:
  // Samples that are drawn in an order of their own.
  struct Range {
    int64_t first, samples;
    ShufflePermutation permutation;
  };
  struct File {
    const TokenDataset* dataset;
    int64_t first;  // its first sample
  };

  Sampler(int64_t sequence, DataOrder order, uint64_t seed) : sequence_(sequence), order_(order), seed_(seed) {}

  absl::Status ReadSample(int64_t sample, int32_t* tokens, int32_t* labels) const;

  int64_t sequence_;
  int64_t samples_ = 0;
  DataOrder order_;
  uint64_t seed_;
  std::vector<File> files_;
  std::vector<Range> ranges_;   // one, or one for each file of a blend
  std::optional<Blend> blend_;  // of the ranges
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_SAMPLER_H_
