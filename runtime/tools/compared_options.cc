#include "runtime/tools/compared_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file_fingerprint.h"
#include "runtime/train/data/dataset_group.h"

namespace bowline {
namespace {

// The plan is compared by its hash.
constexpr absl::string_view kOfOneRank[] = {"PLAN", "--help", "--rank", "--local-rank", "--rendezvous", "--metrics",
                                            "--quiet", "--profile", "--trace", "--nproc", "--world-size",
                                            "--rendezvous-timeout", "--driver-path",
                                            // Of bowline-serve, where rank 0 alone answers requests.
                                            "MODEL", "--host", "--port", "--api-key-file", "--cors-origin",
                                            "--served-model-name", "--max-queue", "--drain-timeout", "--log-json"};
constexpr absl::string_view kContents[] = {"--data", "--eval-data", "--weights"};

template <size_t N>
bool IsAmong(const absl::string_view (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// A file that this rank cannot read is said by the comparison, if others can.
std::string ContentsOf(const std::string& path) {
  const absl::StatusOr<std::string> fingerprint = FingerprintOf(path);
  return fingerprint.ok() ? *fingerprint : std::string(fingerprint.status().message());
}

// Contents and weights of all files. An argument that is no list of files is compared as text.
std::string ContentsOfData(const std::vector<std::string>& arguments) {
  const absl::StatusOr<std::vector<DataFile>> files = ParseDataFiles(arguments);
  if (!files.ok()) return absl::StrJoin(arguments, ", ");
  return absl::StrJoin(*files, "; ", [](std::string* out, const DataFile& file) {
    if (file.weight > 0) absl::StrAppend(out, file.weight, " of ");
    absl::StrAppend(
        out, PrefixOfTokens(file.path),
        absl::StrJoin(FilesOfTokens(file.path), " with ",
                      [](std::string* contents, const std::string& one) { contents->append(ContentsOf(one)); }));
  });
}

}  // namespace

NamedValues ComparedOptions(const CLI::App& app) {
  NamedValues values;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (IsAmong(kOfOneRank, name)) continue;
    const bool of_contents = IsAmong(kContents, name);
    std::string value = option->get_default_str();
    if (option->count() > 0) {
      value = !of_contents          ? absl::StrJoin(option->results(), ", ")
              : name == "--weights" ? ContentsOf(option->results().back())
                                    : ContentsOfData(option->results());
    } else if (value.empty()) {
      value = "not given";
    }
    values.emplace_back(absl::StrCat(of_contents ? "the contents of " : "", name), std::move(value));
  }
  return values;
}

}  // namespace bowline
