#ifndef BOWLINE_RUNTIME_TRAIN_RECIPE_H_
#define BOWLINE_RUNTIME_TRAIN_RECIPE_H_

// The settings that decide how a run goes on: those that the plan computes with (kRecipeAttachment), and those of the
// data.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// A setting by the name of its flag, with the value that a checkpoint has and the one of the run that resumes it, as
// JSON.
struct SettingChange {
  std::string name;
  std::string saved;
  std::string here;

  bool operator==(const SettingChange&) const = default;
};

// The settings in which two recipes differ, sorted by name. If one recipe lacks a setting, its value is "-". Numbers
// are equal if they round to the same f32, the type in which plans compute. Both arguments are JSON objects; an empty
// text stands for an unknown recipe, which differs from none.
absl::StatusOr<std::vector<SettingChange>> DifferencesOfRecipes(absl::string_view saved, absl::string_view here);

// OK when `allowed` has the name of every change. kFailedPrecondition, with a table of all changes and the flag
// --allow-changes that would allow them; that of the optimizer
// cannot be allowed. kInvalidArgument when a name of `allowed` is none of `names`.
absl::Status CheckChanges(const std::string& checkpoint, absl::Span<const SettingChange> changes,
                          absl::Span<const std::string> allowed, absl::Span<const std::string> names);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_RECIPE_H_
