#include "runtime/train/recipe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/view/attachments.h"

namespace bowline {
namespace {

using nlohmann::json;

bool IsSameSetting(const json& a, const json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  return static_cast<float>(a.get<double>()) == static_cast<float>(b.get<double>());
}

std::string ValueOf(const json& recipe, const std::string& name) {
  const auto found = recipe.find(name);
  if (found == recipe.end()) return "-";
  return found->dump(-1, ' ', false, json::error_handler_t::replace);
}

bool IsNamed(absl::Span<const std::string> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string TableOf(absl::Span<const SettingChange> changes) {
  constexpr absl::string_view kName = "setting", kSaved = "checkpoint", kHere = "this run";
  size_t name = kName.size(), saved = kSaved.size();
  for (const SettingChange& change : changes) {
    name = std::max(name, change.name.size());
    saved = std::max(saved, change.saved.size());
  }
  const auto row = [&](absl::string_view a, absl::string_view b, absl::string_view c) {
    return absl::StrFormat("\n  %-*s  %-*s  %s", static_cast<int>(name), a, static_cast<int>(saved), b, c);
  };
  std::string table = row(kName, kSaved, kHere);
  for (const SettingChange& change : changes) absl::StrAppend(&table, row(change.name, change.saved, change.here));
  return table;
}

}  // namespace

absl::StatusOr<std::vector<SettingChange>> DifferencesOfRecipes(absl::string_view saved, absl::string_view here) {
  std::vector<SettingChange> changes;
  if (saved.empty() || here.empty()) return changes;
  BOWLINE_ASSIGN_OR_RETURN(const json theirs, ParseAttachment(kRecipeAttachment, saved));
  BOWLINE_ASSIGN_OR_RETURN(const json ours, ParseAttachment(kRecipeAttachment, here));
  std::set<std::string> names;
  for (const json* recipe : {&theirs, &ours}) {
    for (const auto& [name, value] : recipe->items()) names.insert(name);
  }
  for (const std::string& name : names) {
    if (theirs.contains(name) && ours.contains(name) && IsSameSetting(theirs[name], ours[name])) continue;
    changes.push_back({name, ValueOf(theirs, name), ValueOf(ours, name)});
  }
  return changes;
}

absl::Status CheckChanges(const std::string& checkpoint, absl::Span<const SettingChange> changes,
                          absl::Span<const std::string> allowed, absl::Span<const std::string> names) {
  for (const std::string& name : allowed) {
    if (IsNamed(names, name)) continue;
    std::vector<std::string> allowable(names.begin(), names.end());
    std::erase(allowable, "optimizer");  // whose change is refused below
    return absl::InvalidArgumentError(absl::StrCat("--allow-changes ", name, " is no setting of this run; it may name ",
                                                   absl::StrJoin(allowable, ", ")));
  }
  // Each optimizer has states of its own, which the other's checkpoint lacks.
  for (const SettingChange& change : changes) {
    if (change.name != "optimizer") continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "'", checkpoint, "' was saved by a run with another optimizer, whose states this one cannot go on with:",
        TableOf(changes), "\nResume it as it was, or begin a new run from its weights with --weights ", checkpoint));
  }
  std::vector<std::string> all;
  bool refused = false;
  for (const SettingChange& change : changes) {
    all.push_back(change.name);
    refused |= !IsNamed(allowed, change.name);
  }
  if (!refused) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "'", checkpoint, "' was saved by a run with other settings, and would not go on as it began:", TableOf(changes),
      "\nResume it as it was, go on with this run's settings by --allow-changes ", absl::StrJoin(all, ","),
      ", or begin a new run from its weights with --weights ", checkpoint));
}

}  // namespace bowline
