#ifndef BOWLINE_RUNTIME_TRAIN_TOKEN_SCAN_H_
#define BOWLINE_RUNTIME_TRAIN_TOKEN_SCAN_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/train/agreement.h"
#include "runtime/train/data/dataset.h"

namespace bowline {

// How a scan says how far it is.
using ScanProgress = absl::FunctionRef<void(int64_t tokens_done, int64_t tokens)>;

// Finds tokens outside of [0, vocabulary) in all files of `dataset`, which was opened with that vocabulary, before a
// run needs them. All ranks call it with the same data; each looks at its share of each file, and all return the error
// of the first rank that has one: kInvalidArgument naming file, position, id and vocabulary.
//
// Files of a type that holds no id outside are not read. Neither are those that were scanned before: `cache` is a
// folder for a small file for each, which is named by the file's size, times and fingerprint; empty: nothing is kept. A
// folder that cannot be written and damaged files in it are as if nothing had been kept.
absl::Status ScanTokens(const TokenDataset& dataset, int64_t vocabulary, const std::string& cache, Agreement& agreement,
                        ScanProgress progress);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_TOKEN_SCAN_H_
