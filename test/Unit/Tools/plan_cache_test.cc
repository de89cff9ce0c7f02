#include "runtime/tools/plan_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "test/Unit/Base/gguf_bytes.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

namespace fs = std::filesystem;

void Write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string GgufOf(const std::string& architecture, const std::string& data = std::string(32, '\0')) {
  return GgufBytes({GgufKey("general.architecture", 8, GgufString(architecture))}, {GgufTensorLine("a", {8}, 0, 0)},
                   data);
}

class PlanNames : public ::testing::Test {
 protected:
  PlanNames() {
    Write(compiler_, "compiler");
    Write(gguf_, GgufOf("llama"));
    fs::create_directories(directory_);
    Write(directory_ + "/config.json", "{}");
    Write(directory_ + "/model.safetensors", "weights");
    Write(directory_ + "/notes.txt", "a");
  }

  std::string NameOf(const std::string& model, const std::vector<CompileFlag>& flags = {}) const {
    const absl::StatusOr<std::string> name = PlanNameOf(model, flags, compiler_);
    EXPECT_TRUE(name.ok()) << name.status();
    return name.value_or("");
  }
  // Writes the bytes and leaves the time as it is.
  static void Replace(const std::string& path, const std::string& bytes) {
    const fs::file_time_type time = fs::last_write_time(path);
    Write(path, bytes);
    fs::last_write_time(path, time);
  }

  TempDirectory temporary_;
  const std::string compiler_ = temporary_ / "bowline-compile", gguf_ = temporary_ / "m.gguf",
                    directory_ = temporary_ / "m";
};

TEST_F(PlanNames, AreEqualForWhatIsEqual) {
  EXPECT_EQ(NameOf(gguf_), NameOf(gguf_));
  EXPECT_EQ(NameOf(directory_), NameOf(directory_ + "/"));
  const std::string before = NameOf(directory_);
  Write(directory_ + "/notes.txt", "b, and more");
  EXPECT_EQ(NameOf(directory_), before);
}

TEST_F(PlanNames, DifferByWhatPlansDoFollowFrom) {
  std::set<std::string> names = {NameOf(gguf_), NameOf(directory_)};
  const auto expect_new = [&](const std::string& model, const std::vector<CompileFlag>& flags = {}) {
    EXPECT_TRUE(names.insert(NameOf(model, flags)).second);
  };
  expect_new(gguf_, {{"--max-batch", "2"}});
  expect_new(gguf_, {{"--max-batch", "20"}});
  expect_new(gguf_, {{"--max-batch", "2"}, {"--dtype", "bf16"}});
  Replace(gguf_, GgufOf("qwen2"));
  expect_new(gguf_);
  Replace(gguf_, GgufOf("qwen3"));  // of the same size
  expect_new(gguf_);
  fs::last_write_time(gguf_, fs::last_write_time(gguf_) + std::chrono::nanoseconds(1));
  expect_new(gguf_);
  Replace(gguf_, GgufOf("qwen3", std::string(64, '\0')));
  expect_new(gguf_);
  Replace(directory_ + "/config.json", "[]");
  expect_new(directory_);
  Replace(directory_ + "/model.safetensors", "more weights");
  expect_new(directory_);
  Write(directory_ + "/model.safetensors.index.json", "{}");
  expect_new(directory_);
  Replace(compiler_, "another one");
  expect_new(directory_);
  expect_new(gguf_);
}

TEST_F(PlanNames, NameFilesThatCannotBeRead) {
  const auto message = [&](const std::string& model) {
    return std::string(PlanNameOf(model, {}, compiler_).status().message());
  };
  EXPECT_NE(message(temporary_ / "no.gguf").find("no.gguf"), std::string::npos);
  EXPECT_NE(message(temporary_.path()).find("config.json"), std::string::npos);
}

TEST(PlanFolder, KeepsThePlansThatWereUsedLast) {
  const TempDirectory cache;
  ::setenv("BOWLINE_CACHE_DIR", cache.path().c_str(), 1);
  const absl::StatusOr<PlanFolder> folder = PlanFolder::Open();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->why_temporary(), "");
  const fs::file_time_type now = fs::file_time_type::clock::now();
  for (int i = 0; i < 70; ++i) {
    const std::string path = folder->PathOf(absl::StrCat("p", i));
    EXPECT_EQ(path, absl::StrCat(cache.path(), "/plans/p", i, ".plan"));
    Write(path, "plan");
    fs::last_write_time(path, now - std::chrono::hours(100 - i));
  }
  Write(cache.path() + "/plans/unrelated", "");
  folder->MarkUsed("p2");
  folder->Trim();
  for (int i = 0; i < 70; ++i) EXPECT_EQ(fs::exists(folder->PathOf(absl::StrCat("p", i))), i == 2 || i >= 7) << i;
  EXPECT_TRUE(fs::exists(cache.path() + "/plans/unrelated"));
}

TEST(PlanFolder, GoesWithTheObjectWhereNothingIsKept) {
  const TempDirectory temporary;
  ::setenv("TMPDIR", temporary.path().c_str(), 1);
  ::setenv("BOWLINE_CACHE_DIR", "off", 1);
  {
    absl::StatusOr<PlanFolder> folder = PlanFolder::Open();
    ASSERT_TRUE(folder.ok()) << folder.status();
    const PlanFolder moved = *std::move(folder);
    EXPECT_EQ(moved.why_temporary(), "the cache is off");
    Write(moved.PathOf("p"), "plan");
    EXPECT_TRUE(fs::exists(moved.PathOf("p")));
    EXPECT_EQ(moved.PathOf("p").rfind(temporary.path(), 0), 0);
  }
  EXPECT_TRUE(fs::is_empty(temporary.path()));
  ::unsetenv("TMPDIR");
}

TEST(PlanFolder, SaysWhatIsMissingWhereNoFolderCanBeMade) {
  ::setenv("TMPDIR", "/no/such/folder", 1);
  ::setenv("BOWLINE_CACHE_DIR", "off", 1);
  const absl::Status status = PlanFolder::Open().status();
  EXPECT_NE(std::string(status.message()).find("/no/such/folder"), std::string::npos) << status;
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace bowline
