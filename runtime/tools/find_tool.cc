#include "runtime/tools/find_tool.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace bowline {

namespace fs = std::filesystem;

std::vector<fs::path> ToolFolders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(self.parent_path());
  if (const char* path = std::getenv("PATH")) {
    for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
      folders.emplace_back(std::string(folder));
    }
  }
  return folders;
}

std::string FindTool(const std::string& name) {
  for (const fs::path& folder : ToolFolders()) {
    const fs::path file = folder / name;
    std::error_code error;
    if (fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0) return file.string();
  }
  return "";
}

}  // namespace bowline
