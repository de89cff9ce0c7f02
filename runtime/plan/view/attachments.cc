#include "runtime/plan/view/attachments.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/json.h"

namespace bowline {
namespace {

using nlohmann::json;

absl::Status VerifyFunctionKey(const json& meaning) {
  if (!meaning.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("is ", DescribeJsonType(meaning), ", and not an object"));
  }
  const auto null = meaning.find("null");
  if (null != meaning.end() && !null->is_boolean()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", DescribeJsonType(*null), " for \"null\", and not a boolean"));
  }
  return absl::OkStatus();
}

absl::Status VerifyIgnoredTensor(const json& copy_of) {
  if (copy_of.is_string()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("is ", DescribeJsonType(copy_of), ", and not a parameter's name"));
}

absl::Status VerifySetting(const json& value) {
  if (value.is_number() || value.is_string()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("is ", DescribeJsonType(value), ", and not a number or a text"));
}

absl::Status VerifyValueOf(absl::string_view name, const json& value) {
  if (name == kFunctionKeysAttachment) return VerifyFunctionKey(value);
  return name == kRecipeAttachment ? VerifySetting(value) : VerifyIgnoredTensor(value);
}

}  // namespace

bool IsJsonAttachment(absl::string_view name) {
  return name == kConfigAttachment || name == kFunctionKeysAttachment || name == kIgnoredTensorsAttachment ||
         name == kRecipeAttachment;
}

absl::StatusOr<json> ParseAttachment(absl::string_view name, absl::string_view text) {
  const std::string place = absl::StrCat("the plan's ", name);
  BOWLINE_ASSIGN_OR_RETURN(json object, ParseJson(text, place));
  if (!object.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(place, " is ", DescribeJsonType(object), ", and not an object"));
  }
  if (name == kConfigAttachment) return object;
  for (const auto& [key, value] : object.items()) {
    const absl::Status status = VerifyValueOf(name, value);
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(place, ": \"", key, "\" ", status.message()));
  }
  return object;
}

}  // namespace bowline
