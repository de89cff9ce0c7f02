#include "runtime/base/output_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"

namespace bowline {
namespace {

namespace fs = std::filesystem;

// The steps below the directory of a run.
constexpr int kDeepest = 1;

struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity&) const = default;
};

// Nothing for paths that do not exist, and for pipes and devices, which keep nothing that could be lost.
std::optional<Identity> IdentityOf(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return Identity{info.st_dev, info.st_ino};
}

// Whether the file is one of a model or a checkpoint, by its name; other files beside them may be written over.
bool IsOfModel(absl::string_view name) {
  return name == "config.json" || name == "generation_config.json" || name == "shards.json" ||
         name == "trainer_state.json" || name == "latest" || absl::EndsWith(name, ".safetensors") ||
         absl::EndsWith(name, ".safetensors.index.json") || absl::StartsWith(name, "tokenizer");
}

// The files that an input stands for.
std::vector<std::string> FilesOf(const std::string& path) {
  std::error_code error;
  std::vector<std::string> files;
  if (fs::is_directory(path, error)) {
    auto i = fs::recursive_directory_iterator(path, fs::directory_options::follow_directory_symlink, error);
    for (; !error && i != fs::recursive_directory_iterator(); i.increment(error)) {
      if (i.depth() == kDeepest) i.disable_recursion_pending();
      if (IsOfModel(i->path().filename().string())) files.push_back(i->path().string());
    }
    return files;
  }
  return {path == "-" ? "/dev/stdin" : path};
}

absl::Status IsTheSame(const NamedFile& output, const NamedFile& other, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(output.flag, " and ", other.flag, " name the same file, '",
                                                 output.path, "'", what, "; give one of them another name"));
}

}  // namespace

absl::Status CheckOutputs(absl::Span<const NamedFile> inputs, absl::Span<const NamedFile> outputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty() || output->path == "-") continue;
    // A file that is not there yet cannot be an input, but two outputs can name it.
    const auto same = std::find_if(outputs.begin(), output, [&](const NamedFile& earlier) {
      return !earlier.path.empty() && earlier.path != "-" && AreSameFile(earlier.path, output->path);
    });
    std::error_code error;
    const std::optional<Identity> identity = IdentityOf(output->path);
    if (same != output && (identity.has_value() || !fs::exists(output->path, error)))
      return IsTheSame(*output, *same, "");
    if (!identity.has_value()) continue;
    for (const NamedFile& input : inputs) {
      if (input.path.empty()) continue;
      for (const std::string& file : FilesOf(input.path)) {
        if (IdentityOf(file) != identity) continue;
        if (!fs::is_directory(input.path, error)) return IsTheSame(*output, input, ", which would be overwritten");
        return absl::InvalidArgumentError(absl::StrCat(output->flag, " names '", output->path, "', a file of ",
                                                       input.flag, " '", input.path,
                                                       "', which would be overwritten; give it another name"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
