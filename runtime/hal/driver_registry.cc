#include "runtime/hal/driver_registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/hal/driver_plugin.h"

namespace bowline::hal {
namespace {

bool IsName(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// The library stays loaded, for devices and their threads may live until the process ends.
absl::StatusOr<const DriverPlugin*> LoadPlugin(const std::string& path) {
  const auto unusable = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("the driver '", path, "' cannot be used: ", why));
  };
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unusable(::dlerror());
  auto* function = reinterpret_cast<DriverPluginFunction>(::dlsym(library, kDriverPluginFunction));
  if (function == nullptr) return unusable(absl::StrCat("it does not export ", kDriverPluginFunction));
  const DriverPlugin* plugin = function();
  if (plugin == nullptr || plugin->create == nullptr || plugin->interface_hash == nullptr) {
    return unusable(absl::StrCat(kDriverPluginFunction, " returns no driver"));
  }
  if (absl::string_view(plugin->interface_hash) != kInterfaceHash) {
    return unusable("it was made with another build; install the driver of this one");
  }
  return plugin;
}

}  // namespace

absl::Status DriverRegistry::Add(const std::string& name, DeviceFactory factory) {
  if (factories_.emplace(name, std::move(factory)).second) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("there already is a driver '", name, "'"));
}

absl::StatusOr<std::unique_ptr<Device>> DriverRegistry::CreateDevice(const std::string& name,
                                                                     const DeviceOptions& options) const {
  const auto found = factories_.find(name);
  if (found != factories_.end()) return found->second(options);
  const std::string file = absl::StrCat("libbowline_", name, ".so");
  for (const std::string& folder : IsName(name) ? folders_ : std::vector<std::string>()) {
    const std::string path = absl::StrCat(folder, "/", file);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    BOWLINE_ASSIGN_OR_RETURN(const DriverPlugin* plugin, LoadPlugin(path));
    return plugin->create(options);
  }
  std::string text = absl::StrCat("there is no driver '", name, "'; this build has ", absl::StrJoin(Names(), ", "));
  if (!folders_.empty()) absl::StrAppend(&text, ", and ", file, " is not in ", absl::StrJoin(folders_, ", "));
  return absl::NotFoundError(text);
}

std::vector<std::string> DriverRegistry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

absl::StatusOr<DriverChoice> ParseDriverChoice(absl::string_view text) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no driver: ", why, "; write NAME or NAME:KEY=VALUE,KEY=VALUE"));
  };
  DriverChoice choice;
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  choice.name = std::string(parts.first);
  if (!IsName(choice.name)) return refuse("a name has lower-case letters, digits, '_' and '-'");
  if (parts.first.size() == text.size()) return choice;
  for (const absl::string_view setting : absl::StrSplit(parts.second, ',')) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(setting, absl::MaxSplits('=', 1));
    if (pair.first.empty() || pair.first.size() == setting.size()) {
      return refuse(absl::StrCat("'", setting, "' is no KEY=VALUE"));
    }
    if (!choice.settings.emplace(pair.first, pair.second).second) {
      return refuse(absl::StrCat("'", pair.first, "' is there twice"));
    }
  }
  return choice;
}

absl::Status CheckSettings(absl::string_view driver, const DeviceOptions& options,
                           std::initializer_list<absl::string_view> known) {
  for (const auto& [key, value] : options.settings) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the driver '", driver, "' has no setting '", key, "'; it has ",
                     known.size() == 0 ? std::string("none") : absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace bowline::hal
