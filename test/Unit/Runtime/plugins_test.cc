// Drivers that are shared libraries.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/drivers/builtin_drivers.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

// The folder of the plugins that this binary was built with.
const std::string kPlugins = BOWLINE_TEST_PLUGINS;

absl::Status Error(const hal::DriverRegistry& drivers, const std::string& name) {
  return drivers.CreateDevice(name, {}).status();
}

TEST(Plugins, AreFoundByName) {
  for (const auto& drivers : {AllDrivers(""), AllDrivers("/nowhere:" + kPlugins)}) {
    const auto device = drivers.CreateDevice("discrete", {});
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ((*device)->name(), "discrete");
    EXPECT_EQ((*device)->Description(), "discrete");  // a driver that says nothing more
  }
}

TEST(Plugins, TheEnvironmentSaysWhereTheyAreToo) {
  const TempDirectory directory;
  std::filesystem::create_symlink(kPlugins + "/libbowline_discrete.so", directory / "libbowline_another.so");
  EXPECT_EQ(Error(AllDrivers(""), "another").code(), absl::StatusCode::kNotFound);
  ::setenv("BOWLINE_DRIVER_PATH", directory.path().c_str(), 1);
  const auto device = AllDrivers("").CreateDevice("another", {});
  ::unsetenv("BOWLINE_DRIVER_PATH");
  EXPECT_TRUE(device.ok()) << device.status();
}

TEST(Plugins, AMissingOneSaysWhereItWasLookedFor) {
  const absl::Status status = Error(AllDrivers("/nowhere:/somewhere"), "tpu");
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("there is no driver 'tpu'; this build has cpu, null, and libbowline_tpu.so is not in /nowhere, "
                        "/somewhere, "));
  // A name is no path.
  EXPECT_EQ(Error(AllDrivers("/nowhere"), "../../lib/x").code(), absl::StatusCode::kNotFound);
}

TEST(Plugins, OnesThatCannotBeUsedSayWhy) {
  const TempDirectory directory;
  std::ofstream(directory / "libbowline_garbage.so") << "no library";
  const hal::DriverRegistry drivers = AllDrivers(directory.path() + ":" + kPlugins);
  const struct {
    const char *name, *why;
  } cases[] = {{"garbage", "libbowline_garbage.so' cannot be used: "},
               {"no_function", "libbowline_no_function.so' cannot be used: it does not export bowline_driver_plugin"},
               {"other_build", "libbowline_other_build.so' cannot be used: it was made with another build"}};
  for (const auto& c : cases) {
    const absl::Status status = Error(drivers, c.name);
    EXPECT_EQ(ExitCode(status), 3) << c.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace bowline
