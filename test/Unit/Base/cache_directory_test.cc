#include "runtime/base/cache_directory.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace bowline {
namespace {

TEST(CacheDirectory, ComesFromTheEnvironment) {
  ::setenv("HOME", "/h", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("BOWLINE_CACHE_DIR");
  EXPECT_EQ(DefaultCacheDirectory(), "/h/.cache/bowline");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "/x/bowline");
  ::setenv("BOWLINE_CACHE_DIR", "/b", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "/b");
  ::setenv("BOWLINE_CACHE_DIR", "off", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "");
}

}  // namespace
}  // namespace bowline
