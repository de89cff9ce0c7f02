#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_SCAN_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_SCAN_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/comm/agreement.h"
#include "runtime/train/data/dataset.h"

namespace bowline {

// Receives the progress of a scan on this rank, in tokens.
using ScanProgress = absl::FunctionRef<void(int64_t tokens_done, int64_t tokens)>;

// Finds tokens outside [0, vocabulary) in all files of `dataset`, which must have been opened with that vocabulary. All
// ranks call it with the same data, and each checks its share of each file. All return the error of the lowest rank
// that has one: kInvalidArgument, naming file, position, id and vocabulary.
//
// Skips files whose type cannot hold an invalid id, and files that an earlier scan accepted. `cache` is a folder that
// keeps a small file for each of these, named by size, times and fingerprint; empty: none is kept. If the folder cannot
// be written or its files are damaged, the scan runs again.
absl::Status ScanTokens(const TokenDataset& dataset, int64_t vocabulary, const std::string& cache, Agreement& agreement,
                        ScanProgress progress);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_SCAN_H_
