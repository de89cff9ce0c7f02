#include "runtime/base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace bowline {
namespace {

// The text behind `prefix` in the first line that begins with it; empty where none does.
std::string AfterPrefix(const std::string& path, absl::string_view prefix) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, prefix)) return std::string(rest);
  }
  return "";
}

// The bytes that a control group holds and that the system cannot take back, as it can those of cached files.
uint64_t UsedBy(const std::string& folder) {
  uint64_t current = 0, files = 0;
  if (!absl::SimpleAtoi(AfterPrefix(folder + "/memory.current", ""), &current)) return 0;
  if (!absl::SimpleAtoi(AfterPrefix(folder + "/memory.stat", "file "), &files)) return current;
  return current - std::min(current, files);
}

}  // namespace

uint64_t AvailableMemory(const std::string& root) {
  uint64_t available = 0;
  // "MemAvailable:   12345 kB"
  const std::string text = AfterPrefix(absl::StrCat(root, "/proc/meminfo"), "MemAvailable:");
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  uint64_t kilobytes = 0;
  if (!words.empty() && absl::SimpleAtoi(words[0], &kilobytes)) available = kilobytes << 10;
  // "0::/a/b": groups inside of others may have less than these.
  std::string group = AfterPrefix(absl::StrCat(root, "/proc/self/cgroup"), "0::");
  while (true) {
    const std::string folder = absl::StrCat(root, "/sys/fs/cgroup", group);
    uint64_t limit = 0;
    // "max" where there is none.
    if (absl::SimpleAtoi(AfterPrefix(folder + "/memory.max", ""), &limit)) {
      const uint64_t used = UsedBy(folder), left = limit > used ? limit - used : 1;
      available = available == 0 ? left : std::min(available, left);
    }
    if (group.empty()) break;
    group.resize(std::min(group.rfind('/'), group.size() - 1));
  }
  return available;
}

}  // namespace bowline
