#include "runtime/base/cache_directory.h"

#include <cstdlib>

namespace bowline {

std::string DefaultCacheDirectory() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string own = variable("BOWLINE_CACHE_DIR"); !own.empty()) return own == "off" ? "" : own;
  if (const std::string all = variable("XDG_CACHE_HOME"); !all.empty()) return all + "/bowline";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/bowline";
}

}  // namespace bowline
