#ifndef BOWLINE_RUNTIME_TOOLS_PLAN_CACHE_H_
#define BOWLINE_RUNTIME_TOOLS_PLAN_CACHE_H_

// Plans that were compiled to serve a model, in the folder "plans" of the cache (runtime/base/cache_directory.h), a
// file each. Any number of processes may use it at the same time: compilers give a file its name when it is complete,
// and plans have a hash of their own.

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace bowline {

// Returns whether the path is a model for bowline-compile instead of a plan: a GGUF file or a directory.
bool IsModelPath(const std::string& path);

// A flag of bowline-compile and its value, as in {"--max-context", "2048"}.
using CompileFlag = std::pair<std::string, std::string>;

// Returns the name of the plan of `model` that `compiler` makes with these flags for this process. The name follows
// from everything on which the plan depends:
//
// - of a GGUF file its size, its time, and a hash of its header (metadata and the table of tensors); of a directory a
//   hash of config.json, and names, sizes and times of files of safetensors and their indices
// - the flags
// - the path of the compiler's executable, its size and its time
// - the level of instructions and the processors that this process has
//
// Errors name a file that cannot be read, or a level that the environment asks for and the machine lacks.
absl::StatusOr<std::string> PlanNameOf(const std::string& model, const std::vector<CompileFlag>& flags,
                                       const std::string& compiler);

// A folder for plans: that of the cache, or, if the cache is off or read-only, one that the destructor removes.
class PlanFolder {
 public:
  static absl::StatusOr<PlanFolder> Open();
  PlanFolder(PlanFolder&& other) noexcept;
  PlanFolder& operator=(PlanFolder&&) = delete;
  ~PlanFolder();

  std::string PathOf(const std::string& name) const;
  // The reason why plans are not kept; empty if they are kept.
  const std::string& why_temporary() const { return why_temporary_; }

  // Makes the plan the one that was used last.
  void MarkUsed(const std::string& name) const;
  // Removes the plans that were used longest ago, as long as there are more than a few.
  void Trim() const;

 private:
  PlanFolder(std::string folder, std::string why_temporary)
      : folder_(std::move(folder)), why_temporary_(std::move(why_temporary)) {}

  std::string folder_, why_temporary_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_PLAN_CACHE_H_
