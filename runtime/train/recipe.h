#ifndef BOWLINE_RUNTIME_TRAIN_RECIPE_H_
#define BOWLINE_RUNTIME_TRAIN_RECIPE_H_

// Compares the settings that determine how a run continues: those that the plan was compiled with (kRecipeAttachment),
// and those of the data.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline {

// A setting, named like its flag, with its JSON values in the checkpoint and in the run that
// resumes from it; "-" for none.
struct SettingChange {
  std::string name;
  std::string saved;
  std::string here;

  bool operator==(const SettingChange&) const = default;
};

// Returns the settings in which two recipes differ, sorted by name. A setting that one recipe lacks has the value "-"
// there. Numbers are equal if they round to the same f32, the type in which plans compute. Recipes are JSON objects; an
// empty text is an unknown recipe, which differs from none.
absl::StatusOr<std::vector<SettingChange>> DifferencesOfRecipes(absl::string_view saved, absl::string_view here);

// Returns OK if `allowed` names every change. Otherwise returns kFailedPrecondition with a table of all changes and the
// flag --allow-changes that would allow them; a change of the optimizer cannot be allowed. Returns kInvalidArgument
// when a name in `allowed` is not among `names`.
absl::Status CheckChanges(const std::string& checkpoint, absl::Span<const SettingChange> changes,
                          absl::Span<const std::string> allowed, absl::Span<const std::string> names);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_RECIPE_H_
