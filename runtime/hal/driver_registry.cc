#include "runtime/hal/driver_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline::hal {

absl::Status DriverRegistry::Add(const std::string& name, DeviceFactory factory) {
  if (factories_.emplace(name, std::move(factory)).second) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("there already is a driver '", name, "'"));
}

absl::StatusOr<std::unique_ptr<Device>> DriverRegistry::CreateDevice(const std::string& name,
                                                                     const DeviceOptions& options) const {
  const auto found = factories_.find(name);
  if (found != factories_.end()) return found->second(options);
  return absl::NotFoundError(
      absl::StrCat("there is no driver '", name, "'; this build has ", absl::StrJoin(Names(), ", ")));
}

std::vector<std::string> DriverRegistry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

}  // namespace bowline::hal
