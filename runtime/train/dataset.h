#ifndef BOWLINE_RUNTIME_TRAIN_DATASET_H_
#define BOWLINE_RUNTIME_TRAIN_DATASET_H_

// Files of token ids, as one long sequence. The format is recognised by content:
//
//   llm.c .bin          256 x int32 header (magic 20240520, version 1, number of tokens), then u16 tokens
//   Megatron .bin/.idx  the index has type and lengths of the sequences in .bin; their concatenation is read. The path
//                       is that of either file, or has no extension.
//   NumPy .npy          a one-dimensional array of u16 or i32, format version 1 or 2
//
// Files are memory-mapped; opening costs the same for any size.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

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

  // Checks what opening leaves unchecked to stay O(1): that the sequences of a Megatron index follow each other without
  // gaps. Linear in the size of the index.
  virtual absl::Status CheckIndex() const { return absl::OkStatus(); }
};

struct DatasetOptions {
  // The vocabulary's size; token ids must be below it. The default admits every int32.
  int64_t vocabulary = int64_t{1} << 31;
};

// Opens `path`. Errors name the file and what it should be: kNotFound, kDataLoss for a truncated file, kInvalidArgument
// for an unknown or unsupported format.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenTokenDataset(const std::string& path, DatasetOptions options = {});

// Tells different data apart without reading all of it, whatever file holds it: a hash of the number of tokens, and of
// tokens in blocks spread evenly over them, the first and the last ones among them. Up to 65536 tokens all count.
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

#endif  // BOWLINE_RUNTIME_TRAIN_DATASET_H_
