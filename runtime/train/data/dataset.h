#ifndef BOWLINE_RUNTIME_TRAIN_DATA_DATASET_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_DATASET_H_

// Files of token ids, as one long sequence. The format is recognised by content, but for files that have nothing beside
// their tokens, where it is a prefix of the path:
//
//   llm.c .bin          256 x int32 header (magic, version, number of tokens), then tokens: u16 with the magic 20240520
//                       and version 1, u32 with the magic 20240801 and version 7 or 1
//   Megatron .bin/.idx  the index has type and lengths of the sequences in .bin; their concatenation is read. The path
//                       is that of either file, or has no extension.
//   NumPy .npy          a one-dimensional array of integers, signed or not, of 8 to 64 bits, format version 1 or 2
//   u16:PATH, u32:PATH  raw little-endian tokens. Files that have headers, are compressed or contain text are refused
//
// Files are memory-mapped; opening costs the same for any size.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

class TokenDataset;

// One of the datasets of a group. Samples of a group without weights follow each other; of one with weights, each draw
// takes a sample of the part that is furthest behind its share.
struct DatasetPart {
  const TokenDataset* dataset = nullptr;
  double weight = 0;  // above 0, or 0 in all parts of a group
};

// Random access to token ids. Thread-safe.
class TokenDataset {
 public:
  virtual ~TokenDataset() = default;

  // Number of tokens.
  virtual int64_t size() const = 0;

  // The largest id that the type of the file's tokens can hold: 65535 for u16.
  virtual int64_t max_possible_id() const = 0;

  // A description for people, such as "llm.c, u16".
  virtual std::string description() const = 0;
  virtual const std::string& path() const = 0;

  // Reads tokens [begin, begin + count) into `out`. No allocation unless it fails: kOutOfRange when the range is not
  // inside [0, size()), kInvalidArgument naming file, position and id when a token is not inside [0, vocabulary).
  virtual absl::Status Read(int64_t begin, int64_t count, int32_t* out) const = 0;

  // Checks, as opening does not in order to stay O(1), that the sequences of a Megatron index follow each other without
  // gaps. Linear in the size of the index.
  virtual absl::Status CheckIndex() const { return absl::OkStatus(); }
  // Whether there is an index to check.
  virtual bool HasIndex() const { return false; }

  // Whether a token may be outside of [0, vocabulary): the type of the file's tokens can hold such an id.
  virtual bool MayBeOutside() const { return true; }
  // Looks at the tokens [begin, begin + count), which are inside [0, size()), as Read does: the same errors.
  virtual absl::Status CheckTokens(int64_t begin, int64_t count) const;

  // The files that this is made of, each with samples of its own; a file is its own part. They live as long as this.
  virtual std::vector<DatasetPart> Parts() const { return {{this, 0}}; }
};

struct DatasetOptions {
  // The vocabulary's size; token ids must be below it. The default admits every int32.
  int64_t vocabulary = int64_t{1} << 31;
};

// The prefix of raw tokens with which `path` begins: "u16:", "u32:" or nothing.
absl::string_view PrefixOfTokens(absl::string_view path);

// The files that OpenTokenDataset reads for `path`, whether they are there or not: one, or index and tokens of
// Megatron.
std::vector<std::string> FilesOfTokens(const std::string& path);

// Opens `path`. Errors name the file and its expected form: kNotFound, kDataLoss for a truncated file, kInvalidArgument
// for an unknown or unsupported format.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenTokenDataset(const std::string& path, DatasetOptions options = {});

// Tells different data apart without reading all of it, whatever file holds it: a hash of the number of tokens, and of
// tokens in blocks spread evenly over them, the first and the last ones among them. Up to 65536 tokens all count. Of a
// group: a hash of those of its parts, in order, and of their shares.
std::string DigestOf(const TokenDataset& dataset);

// These read bytes in memory, which must outlive the result; `name` stands for the path in messages. The first one
// takes llm.c or .npy, which it tells apart by content.
absl::StatusOr<std::unique_ptr<TokenDataset>> TokenDatasetFromBytes(absl::Span<const uint8_t> bytes,
                                                                    const std::string& name,
                                                                    DatasetOptions options = {});
// The second one takes the two files of Megatron.
absl::StatusOr<std::unique_ptr<TokenDataset>> MegatronDatasetFromBytes(absl::Span<const uint8_t> index,
                                                                       absl::Span<const uint8_t> tokens,
                                                                       const std::string& name,
                                                                       DatasetOptions options = {});

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_DATASET_H_
