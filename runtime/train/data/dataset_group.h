#ifndef BOWLINE_RUNTIME_TRAIN_DATA_DATASET_GROUP_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_DATASET_GROUP_H_

// Opens several token files as one dataset, for --data and --eval-data.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/train/data/dataset.h"

namespace bowline {

// One argument of --data or --eval-data.
struct DataFile {
  std::string path;   // a path for OpenTokenDataset, possibly with a prefix for raw tokens
  double weight = 0;  // 0: no weight was given
};

// Parses a list of PATH or of WEIGHT:PATH. A file whose name is a number, or begins with a number
// and a colon, must be written as ./NAME. Returns kInvalidArgument when only some files have a
// weight, or when a weight is not above 0.
absl::StatusOr<std::vector<DataFile>> ParseDataFiles(absl::Span<const std::string> arguments);

// Opens all files: a single file as itself, several as a DatasetGroup. Returns the errors of OpenTokenDataset.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataFiles(absl::Span<const DataFile> files, DatasetOptions options);

// The tokens of several files, one file after the other. No sample spans two files (see Sampler).
class DatasetGroup : public TokenDataset {
 public:
  struct Member {
    std::unique_ptr<TokenDataset> dataset;
    double weight = 0;
  };

  // `members` has at least two elements; all have a weight, or none has.
  explicit DatasetGroup(std::vector<Member> members);

  int64_t size() const override { return first_.back(); }
  int64_t max_possible_id() const override;
  bool MayBeOutside() const override;
  std::string description() const override;
  const std::string& path() const override { return path_; }  // "a.bin, b.bin"
  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override;
  absl::Status CheckIndex() const override;
  std::vector<DatasetPart> Parts() const override;

 private:
  std::vector<Member> members_;
  std::vector<int64_t> first_ = {0};  // index of each member's first token; last: the number of all tokens
  std::string path_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_DATASET_GROUP_H_
