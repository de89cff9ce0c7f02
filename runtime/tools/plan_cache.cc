#include "runtime/tools/plan_cache.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/registry/cpu_level.h"
#include "runtime/base/cache_directory.h"
#include "runtime/base/gguf.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/sha256.h"

namespace bowline {

namespace fs = std::filesystem;

namespace {

constexpr char kSuffix[] = ".plan";
// Of a few hundred kilobytes to a few megabytes each.
constexpr size_t kMostPlans = 64;

// "1234 bytes at 1700000000.000000001"
absl::StatusOr<std::string> SizeAndTime(const std::string& path) {
  struct stat about;
  if (::stat(path.c_str(), &about) != 0) return ErrnoToStatus(errno, absl::StrCat("'", path, "'"));
  return absl::StrCat(about.st_size, " bytes at ", about.st_mtim.tv_sec, ".",
                      absl::Dec(about.st_mtim.tv_nsec, absl::kZeroPad9));
}

absl::StatusOr<std::string> DescribeGguf(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(const std::string size, SizeAndTime(path));
  BOWLINE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  const uint64_t header = file.tensors().empty() ? mapped.bytes().size() : file.tensors().front().offset;
  return absl::StrCat("gguf ", size, " ", ToHex(Sha256Of(mapped.bytes().first(header))));
}

absl::StatusOr<std::string> DescribeDirectory(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile config, MappedFile::Open(absl::StrCat(path, "/config.json")));
  std::string text = absl::StrCat("directory ", ToHex(Sha256Of(config.bytes())));
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::EndsWith(name, ".safetensors") || absl::EndsWith(name, ".index.json")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    BOWLINE_ASSIGN_OR_RETURN(const std::string size, SizeAndTime(absl::StrCat(path, "/", name)));
    absl::StrAppend(&text, "\n", name, " ", size);
  }
  return text;
}

int CountProcessors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

absl::StatusOr<std::string> MakeTemporaryFolder() {
  const char* parent = std::getenv("TMPDIR");
  std::string name = absl::StrCat(parent != nullptr && *parent != '\0' ? parent : "/tmp", "/bowline-serve-XXXXXX");
  if (::mkdtemp(name.data()) == nullptr)
    return ErrnoToStatus(errno, absl::StrCat("cannot make the folder '", name, "'"));
  return name;
}

}  // namespace

bool IsModelPath(const std::string& path) {
  std::error_code ignored;
  return IsGgufPath(path) || fs::is_directory(path, ignored);
}

absl::StatusOr<std::string> PlanNameOf(const std::string& model, const std::vector<CompileFlag>& flags,
                                       const std::string& compiler) {
  BOWLINE_ASSIGN_OR_RETURN(const std::string contents,
                           IsGgufPath(model) ? DescribeGguf(model) : DescribeDirectory(model));
  BOWLINE_ASSIGN_OR_RETURN(const std::string build, SizeAndTime(compiler));
  BOWLINE_ASSIGN_OR_RETURN(const CpuLevel level, NativeCpuLevel());
  Sha256 hash;
  // Lengths come first, so that no two lists of texts give the same bytes.
  const auto add = [&](absl::string_view text) { hash.Update(absl::StrCat(text.size(), ":", text)); };
  add("plans 1");
  add(contents);
  for (const auto& [flag, value] : flags) {
    add(flag);
    add(value);
  }
  add(compiler);
  add(build);
  add(absl::string_view(NameOf(level).data(), NameOf(level).size()));
  add(absl::StrCat(CountProcessors()));
  return ToHex(hash.Finish());
}

absl::StatusOr<PlanFolder> PlanFolder::Open() {
  const std::string cache = DefaultCacheDirectory();
  std::string why = "the cache is off";
  if (!cache.empty()) {
    const std::string folder = absl::StrCat(cache, "/plans");
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error && ::access(folder.c_str(), R_OK | W_OK | X_OK) == 0) return PlanFolder(folder, "");
    why = absl::StrCat("cannot use '", folder, "': ", error ? error.message() : std::string(::strerror(errno)));
  }
  BOWLINE_ASSIGN_OR_RETURN(std::string folder, MakeTemporaryFolder());
  return PlanFolder(std::move(folder), std::move(why));
}

PlanFolder::PlanFolder(PlanFolder&& other) noexcept
    : folder_(std::exchange(other.folder_, "")), why_temporary_(std::move(other.why_temporary_)) {}

PlanFolder::~PlanFolder() {
  std::error_code ignored;
  if (!folder_.empty() && !why_temporary_.empty()) fs::remove_all(folder_, ignored);
}

std::string PlanFolder::PathOf(const std::string& name) const { return absl::StrCat(folder_, "/", name, kSuffix); }

void PlanFolder::MarkUsed(const std::string& name) const {
  // If this fails, the plan is merely older than it should be.
  (void)::utimensat(AT_FDCWD, PathOf(name).c_str(), nullptr, 0);
}

void PlanFolder::Trim() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> plans;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    // Another server may remove a file at any moment; then there is one less to count.
    std::error_code gone;
    if (it->path().extension() != kSuffix) continue;
    const fs::file_time_type used = it->last_write_time(gone);
    if (!gone) plans.emplace_back(used, it->path());
  }
  std::sort(plans.begin(), plans.end());
  for (size_t i = 0; i + kMostPlans < plans.size(); ++i) fs::remove(plans[i].second, error);
}

}  // namespace bowline
