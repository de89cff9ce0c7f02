#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/safetensors.h"

namespace bowline {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// A shard is a file beside its index; a name with directories in it could reach any file of the machine.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// A file or folder that people take for weights in the layout that is read, and what to do about it.
struct OtherWeights {
  absl::string_view begin, end;  // of its name
  absl::string_view advice;
};

constexpr absl::string_view kTorch = "weights that torch.save wrote are not read: convert them to safetensors";
constexpr absl::string_view kConvert = "weights of this format are not read: convert them to safetensors";
constexpr OtherWeights kOtherWeights[] = {
    {"pytorch_model", ".bin", kTorch},
    {"pytorch_model", ".bin.index.json", kTorch},
    {"adapter_model", ".safetensors", "an adapter is no whole model: merge it into its model first"},
    {"model-", ".safetensors",
     "which is one of several shards: model.safetensors.index.json, which lists them, is missing"},
    {"", ".safetensors", "call the file model.safetensors, or give a directory with a link of that name"},
    {"", ".gguf", "give the file itself"},
    {"checkpoint-", "", "give that directory"},
    {"consolidated", ".pth", kTorch},
    {"tf_model", ".h5", kConvert},
    {"flax_model", ".msgpack", kConvert},
    {"", ".ckpt", kConvert},
    {"", ".pt", kTorch},
    {"", ".pth", kTorch},
};

// Why a directory that is there holds no weights.
absl::Status DescribeOtherWeights(const std::string& directory) {
  std::error_code ignored;
  const std::filesystem::path single = std::filesystem::path(directory) / "model.safetensors";
  if (std::filesystem::is_symlink(single, ignored)) {
    return absl::NotFoundError(absl::StrCat("'", single.string(), "' is a link to '",
                                            std::filesystem::read_symlink(single, ignored).string(),
                                            "', which is not there; fetch the file again"));
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  for (const auto& [begin, end, advice] : kOtherWeights) {
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, begin) || !absl::EndsWith(name, end)) continue;
      return absl::NotFoundError(absl::StrCat("'", directory, "' holds ", name, " and no model.safetensors; ", advice));
    }
  }
  return absl::NotFoundError(absl::StrCat("'", directory,
                                          "' holds neither model.safetensors nor model.safetensors.index.json; "
                                          "give a directory with weights"));
}

}  // namespace

absl::StatusOr<SafetensorsDirectory> SafetensorsDirectory::Open(const std::string& directory) {
  SafetensorsDirectory result;
  const std::string single = absl::StrCat(directory, "/model.safetensors");
  const std::string index = absl::StrCat(directory, "/model.safetensors.index.json");
  if (Exists(single)) {
    BOWLINE_RETURN_IF_ERROR(result.AddFile(single));
  } else if (Exists(index)) {
    BOWLINE_RETURN_IF_ERROR(result.OpenShards(directory, index));
  } else {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(directory, ignored)) {
      BOWLINE_RETURN_IF_ERROR(MappedFile::Open(directory).status());  // names a Git LFS pointer
      return absl::InvalidArgumentError(
          absl::StrCat("'", directory, "' is a file, not a directory; give the directory with the weights"));
    }
    if (!std::filesystem::is_directory(directory, ignored)) {
      return absl::NotFoundError(absl::StrCat("there is no directory '", directory, "'; check the path"));
    }
    return DescribeOtherWeights(directory);
  }
  return result;
}

absl::Status SafetensorsDirectory::AddFile(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  files_.push_back(std::make_unique<SafetensorsFile>(std::move(file)));
  for (const SafetensorsTensor& tensor : files_.back()->tensors()) {
    const auto [entry, is_new] = tensors_.try_emplace(tensor.name, Entry{files_.back().get(), &tensor});
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is in both '",
                                                     entry->second.file->path(), "' and '", path,
                                                     "'; each tensor may be in one shard"));
    }
  }
  return absl::OkStatus();
}

absl::Status SafetensorsDirectory::OpenShards(const std::string& directory, const std::string& index_path) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", index_path, "': ", what));
  };
  index_path_ = index_path;
  BOWLINE_ASSIGN_OR_RETURN(const nlohmann::json index, ReadJsonFile(index_path));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object()) {
    return error("should be an object with the key \"weight_map\", itself an object");
  }
  std::map<std::string, SafetensorsFile*> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return error(absl::StrCat("\"weight_map\": the value of \"", name, "\" should be the name of a file beside it"));
    }
    const auto& shard_name = shard.get_ref<const std::string&>();
    auto [opened, is_new] = shards.try_emplace(shard_name, nullptr);
    if (is_new) {
      const std::string path = absl::StrCat(directory, "/", shard_name);
      if (!Exists(path)) {
        return absl::NotFoundError(absl::StrCat("'", index_path, "' names the shard '", shard_name,
                                                "', which is not there; fetch it into the same directory"));
      }
      BOWLINE_RETURN_IF_ERROR(AddFile(path));
      opened->second = files_.back().get();
    }
    if (opened->second->Find(name) == nullptr) missing_[name] = opened->second->path();
  }
  for (const auto& [name, shard] : missing_) {
    if (const Entry* entry = Find(name); entry != nullptr) {
      return error(absl::StrCat("tensor '", name, "' should be in '", shard, "' but is in '", entry->file->path(),
                                "'; correct the index, or fetch index and shards again"));
    }
  }
  for (const auto& [name, entry] : tensors_) {
    if (!map->contains(name)) {
      return error(absl::StrCat("does not name the tensor '", name, "' of '", entry.file->path(),
                                "'; index and shards are of different models"));
    }
  }
  return absl::OkStatus();
}

std::string SafetensorsDirectory::DescribeMissing(absl::string_view name) const {
  const auto found = missing_.find(name);
  if (found == missing_.end() || name.empty()) return "";
  return absl::StrCat("which '", index_path_, "' lists in '", found->second, "', but that shard does not have it");
}

const SafetensorsDirectory::Entry* SafetensorsDirectory::Find(absl::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace bowline
