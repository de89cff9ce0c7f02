#include "runtime/train/data/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// A few rounds more than the four that make a strong permutation of a large domain; small ones need them.
constexpr int kRounds = 8;
// A Feistel network over fewer than 2^6 values reaches only part of all permutations; walking from 64 down to a handful
// of samples costs microseconds.
constexpr int kMinHalfBits = 3;

// First word of Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
uint32_t Philox(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter[0];
}

absl::StatusOr<int64_t> CountSamples(const TokenDataset& file, int64_t sequence) {
  const int64_t samples = file.size() == 0 ? 0 : (file.size() - 1) / sequence;
  if (samples > 0) return samples;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", file.path(), "' is too short: it has ", file.size(), " tokens, and one sample of sequence length ", sequence,
      " takes ", static_cast<uint64_t>(sequence) + 1, "; give more data or compile with a smaller --seq"));
}

}  // namespace

absl::string_view NameOf(DataOrder order) { return order == DataOrder::kShuffle ? "shuffle" : "sequential"; }

absl::StatusOr<DataOrder> DataOrderFromName(absl::string_view name) {
  if (name == "sequential") return DataOrder::kSequential;
  if (name == "shuffle") return DataOrder::kShuffle;
  return absl::InvalidArgumentError(absl::StrCat("unknown data order '", name, "'; give sequential or shuffle"));
}

ShufflePermutation::ShufflePermutation(int64_t size, uint64_t seed)
    : size_(static_cast<uint64_t>(size)),
      seed_(seed),
      half_bits_(std::max<int>(kMinHalfBits, (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2)) {}

uint64_t ShufflePermutation::Encrypt(uint64_t epoch, uint64_t value) const {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << half_bits_) - 1);
  uint32_t left = static_cast<uint32_t>(value >> half_bits_);
  uint32_t right = static_cast<uint32_t>(value) & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const std::array<uint32_t, 4> counter = {right, round, static_cast<uint32_t>(epoch),
                                             static_cast<uint32_t>(epoch >> 32)};
    const uint32_t mixed = left ^ (Philox(counter, seed_) & mask);
    left = right;
    right = mixed;
  }
  return (static_cast<uint64_t>(left) << half_bits_) | right;
}

int64_t ShufflePermutation::operator()(uint64_t epoch, int64_t index) const {
  if (size_ == 1) return 0;
  // Following the cycle of a permutation from inside [0, size) always leads back inside.
  uint64_t value = static_cast<uint64_t>(index);
  do {
    value = Encrypt(epoch, value);
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

absl::StatusOr<Sampler> Sampler::Create(const TokenDataset* dataset, int64_t sequence, DataOrder order, uint64_t seed) {
  if (sequence < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a sample of ", sequence, " tokens; the length must be 1 or more"));
  }
  Sampler sampler(sequence, order, seed);
  std::vector<double> weights;
  for (const DatasetPart& part : dataset->Parts()) {
    BOWLINE_ASSIGN_OR_RETURN(const int64_t samples, CountSamples(*part.dataset, sequence));
    sampler.files_.push_back({part.dataset, sampler.samples_});
    if (part.weight > 0) {
      // Files of one length would be shuffled alike by one seed.
      const uint64_t own_seed = seed + weights.size() * uint64_t{0x9E3779B97F4A7C15};
      sampler.ranges_.push_back({sampler.samples_, samples, ShufflePermutation(samples, own_seed)});
      weights.push_back(part.weight);
    }
    sampler.samples_ += samples;
  }
  if (weights.empty()) {
    sampler.ranges_.push_back({0, sampler.samples_, ShufflePermutation(sampler.samples_, seed)});
  } else {
    sampler.blend_.emplace(weights);
  }
  return sampler;
}

int64_t Sampler::SampleOfDraw(int64_t draw) const {
  const Blend::Place place = blend_.has_value() ? blend_->PlaceOf(draw) : Blend::Place{0, draw};
  const Range& range = ranges_[place.source];
  const int64_t index = place.index % range.samples;
  if (order_ == DataOrder::kSequential) return range.first + index;
  return range.first + range.permutation(static_cast<uint64_t>(place.index / range.samples), index);
}

absl::Status Sampler::FillBatch(int64_t step, int64_t batch, int32_t* tokens, int32_t* labels) const {
  int64_t first;
  if (step < 0 || batch < 1 || __builtin_mul_overflow(step, batch, &first)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no batch of ", batch, " samples at step ", step));
  }
  return FillDraws(first, batch, tokens, labels);
}

absl::Status Sampler::FillDraws(int64_t first, int64_t count, int32_t* tokens, int32_t* labels) const {
  if (first < 0 || count < 0 || first > INT64_MAX - count) {
    return absl::InvalidArgumentError(absl::StrCat("there are no ", count, " draws from number ", first, " on"));
  }
  for (int64_t i = 0; i < count; ++i) {
    BOWLINE_RETURN_IF_ERROR(ReadSample(SampleOfDraw(first + i), tokens + i * sequence_, labels + i * sequence_));
  }
  return absl::OkStatus();
}

absl::Status Sampler::ReadSample(int64_t sample, int32_t* tokens, int32_t* labels) const {
  const auto after = std::upper_bound(files_.begin(), files_.end(), sample,
                                      [](int64_t wanted, const File& file) { return wanted < file.first; });
  const File& file = *std::prev(after);
  const int64_t begin = (sample - file.first) * sequence_;
  BOWLINE_RETURN_IF_ERROR(file.dataset->Read(begin, sequence_, tokens));
  std::memcpy(labels, tokens + 1, static_cast<size_t>(sequence_ - 1) * sizeof(int32_t));
  return file.dataset->Read(begin + sequence_, 1, labels + sequence_ - 1);
}

}  // namespace bowline
