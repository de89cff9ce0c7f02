#include "targets/target.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline::targets {

#define BOWLINE_TARGET(folder) \
  namespace folder {           \
  const Target& Description(); \
  }
#include "targets/targets.inc"
#undef BOWLINE_TARGET

absl::Span<const Target* const> AllTargets() {
  static const std::vector<const Target*> targets = {
#define BOWLINE_TARGET(folder) &folder::Description(),
#include "targets/targets.inc"
#undef BOWLINE_TARGET
  };
  return targets;
}

const Target& DefaultTarget() { return *AllTargets().front(); }

absl::StatusOr<const Target*> FindTarget(std::string_view name) {
  for (const Target* target : AllTargets()) {
    if (target->name == name) return target;
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no target '", absl::string_view(name.data(), name.size()), "'; this build has ",
      absl::StrJoin(AllTargets(), ", ", [](std::string* out, const Target* target) { out->append(target->name); })));
}

}  // namespace bowline::targets
