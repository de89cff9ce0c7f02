#include "runtime/drivers/builtin_drivers.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_split.h"
#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/drivers/null/null_device.h"

namespace bowline {

hal::DriverRegistry BuiltinDrivers() {
  hal::DriverRegistry registry;
  // Add fails for duplicates alone.
  registry.Add("cpu", &CreateCpuDevice).IgnoreError();
  registry.Add("null", &CreateNullDevice).IgnoreError();
  return registry;
}

hal::DriverRegistry AllDrivers(absl::string_view folders) {
  std::vector<std::string> all;
  const auto add = [&](absl::string_view list) {
    for (const absl::string_view folder : absl::StrSplit(list, ':', absl::SkipEmpty())) all.emplace_back(folder);
  };
  add(folders);
  if (const char* path = std::getenv("BOWLINE_DRIVER_PATH"); path != nullptr) add(path);
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    all.push_back(program.parent_path().string());
    all.push_back((program.parent_path().parent_path() / "lib").string());
  }
  hal::DriverRegistry registry = BuiltinDrivers();
  registry.SearchPluginsIn(std::move(all));
  return registry;
}

}  // namespace bowline
