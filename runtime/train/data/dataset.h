#ifndef BOWLINE_RUNTIME_TRAIN_DATA_DATASET_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_DATASET_H_

// Reads files of token ids as one long sequence. The content tells the format, except for raw tokens, where a prefix of
// the path does:
//
//   llm.c .bin          256 x int32 header (magic, version, number of tokens), then tokens: u16 for magic 20240520 and
//                       version 1, u32 for magic 20240801 and version 7 or 1
//   Megatron .bin/.idx  the index has the type of the tokens in .bin and the lengths of its sequences, which are read
//                       as one. The path names either file, or both by leaving out the extension.
//   NumPy .npy          a one-dimensional array of integers, signed or not, of 8 to 64 bits, format version 1 or 2
//   u16:PATH, u32:PATH  raw little-endian tokens. Refuses files that have headers, are compressed or contain text
//
// Files are memory-mapped, so that opening takes the same time for any size.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

class TokenDataset;

// A dataset of a group. Without weights, the samples of the datasets follow one another. With weights, a Blend chooses
// the dataset of each draw, in proportion to the weights.
struct DatasetPart {
  const TokenDataset* dataset = nullptr;
  double weight = 0;  // 0 in all datasets of the group, or above 0 in all
};

// Random access to token ids. Thread-safe.
class TokenDataset {
 public:
  virtual ~TokenDataset() = default;

  // Number of tokens.
  virtual int64_t size() const = 0;

  // The largest id that the file's type can hold: 65535 for u16.
  virtual int64_t max_possible_id() const = 0;

  // A description for people, such as "llm.c, u16".
  virtual std::string description() const = 0;
  virtual const std::string& path() const = 0;

  // Reads tokens [begin, begin + count) into `out`. No allocation on success. Returns kOutOfRange when the range
  // exceeds [0, size()), and kInvalidArgument, naming file, position and id, when a token is outside [0, vocabulary).
  virtual absl::Status Read(int64_t begin, int64_t count, int32_t* out) const = 0;

  // Checks that the sequences of a Megatron index follow one another without gaps. Opening does not check this because
  // it takes time proportional to the size of the index.
  virtual absl::Status CheckIndex() const { return absl::OkStatus(); }
  // Returns whether the dataset has an index for CheckIndex.
  virtual bool HasIndex() const { return false; }

  // Returns whether the type of the file's tokens can hold ids outside [0, vocabulary).
  virtual bool MayBeOutside() const { return true; }
  // Checks the tokens [begin, begin + count), which must be inside [0, size()). Returns the errors of Read.
  virtual absl::Status CheckTokens(int64_t begin, int64_t count) const;

  // Returns the files of a group, each with samples of its own, or the dataset itself. This dataset owns them.
  virtual std::vector<DatasetPart> Parts() const { return {{this, 0}}; }
};

struct DatasetOptions {
  // The size of the vocabulary: every token id must be below it. The default accepts every non-negative int32.
  int64_t vocabulary = int64_t{1} << 31;
};

// Returns the prefix of `path` that marks raw tokens: "u16:" or "u32:"; empty if there is none.
absl::string_view PrefixOfTokens(absl::string_view path);

// Returns the files that OpenTokenDataset would read for `path`, existing or not: one file, or the index and the tokens
// of Megatron.
std::vector<std::string> FilesOfTokens(const std::string& path);

// Opens `path`. Errors name the file and the expected format: kNotFound, kDataLoss for a truncated file, and
// kInvalidArgument for an unknown or unsupported format.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenTokenDataset(const std::string& path, DatasetOptions options = {});

// Returns the names of the dataset's files for messages, those of a group with their shares: "a.bin (70 %), b.bin (30
// %)". At most about 200 characters.
std::string NamesOf(const TokenDataset& dataset);

// Returns a hash that tells different data apart without reading all of it; format and path do not matter. Hashes the
// number of tokens and blocks of tokens spread evenly from the first to the last, which are all tokens up to 65536. For
// a group, hashes the digests and the shares of its datasets, in order.
std::string DigestOf(const TokenDataset& dataset);

// Opens llm.c or .npy data in memory, which must outlive the result; the content tells the format. `name` stands for
// the path in messages.
absl::StatusOr<std::unique_ptr<TokenDataset>> TokenDatasetFromBytes(absl::Span<const uint8_t> bytes,
                                                                    const std::string& name,
                                                                    DatasetOptions options = {});
// As above, for the contents of the two files of Megatron.
absl::StatusOr<std::unique_ptr<TokenDataset>> MegatronDatasetFromBytes(absl::Span<const uint8_t> index,
                                                                       absl::Span<const uint8_t> tokens,
                                                                       const std::string& name,
                                                                       DatasetOptions options = {});

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_DATASET_H_
