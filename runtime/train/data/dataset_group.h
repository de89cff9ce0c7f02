#ifndef BOWLINE_RUNTIME_TRAIN_DATA_DATASET_GROUP_H_
#define BOWLINE_RUNTIME_TRAIN_DATA_DATASET_GROUP_H_

// Several files of tokens as one dataset, as --data and --eval-data name them.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/train/data/dataset.h"

namespace bowline {

// A file as a command line names it.
struct DataFile {
  std::string path;   // as OpenTokenDataset takes it, with the prefix of raw tokens
  double weight = 0;  // 0: none was given
};

// The files of a list of PATH, or of WEIGHT:PATH. A file whose name is a number, or begins with one and a colon, is
// ./NAME. kInvalidArgument when some files have a weight and others have
// none, and for a weight that is not above 0.
absl::StatusOr<std::vector<DataFile>> ParseDataFiles(absl::Span<const std::string> arguments);

// Opens all of them: one is opened as it is, and several are a DatasetGroup. Errors are those of OpenTokenDataset.
absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataFiles(absl::Span<const DataFile> files, DatasetOptions options);

// The tokens of several files, one file after the other. Samples do not reach from one file into the next, see Sampler.
class DatasetGroup : public TokenDataset {
 public:
  struct Member {
    std::unique_ptr<TokenDataset> dataset;
    double weight = 0;
  };

  // There are two members or more; all have a weight, or none.
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
  std::vector<int64_t> first_ = {0};  // the place of each member's first token, and the number of all tokens
  std::string path_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_DATA_DATASET_GROUP_H_
