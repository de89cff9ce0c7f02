#include "runtime/text/json_object.h"

#include <utility>

#include "runtime/base/json.h"

namespace bowline {

JsonObject::JsonObject(const nlohmann::json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) Fail(absl::StrCat("is ", DescribeJsonType(value), ", not an object"));
}

void JsonObject::Fail(absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(where_, " ", message));
}

const nlohmann::json* JsonObject::Find(const std::string& key) {
  asked_.insert(key);
  if (!value_.is_object()) return nullptr;
  const auto found = value_.find(key);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

std::string JsonObject::String(const std::string& key, absl::string_view otherwise) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr) return std::string(otherwise);
  if (const auto* text = value->get_ptr<const std::string*>()) return *text;
  Fail(absl::StrCat("has '", key, "', ", DescribeJsonType(*value), ", not a string"));
  return "";
}

std::string JsonObject::RequiredString(const std::string& key) {
  if (Find(key) == nullptr) Fail(absl::StrCat("has no '", key, "'"));
  return String(key, "");
}

bool JsonObject::Bool(const std::string& key, bool otherwise) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr) return otherwise;
  if (const auto* flag = value->get_ptr<const bool*>()) return *flag;
  Fail(absl::StrCat("has '", key, "', ", DescribeJsonType(*value), ", not true or false"));
  return otherwise;
}

int32_t JsonObject::Number(const std::string& key) {
  const nlohmann::json* const value = Find(key);
  if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= INT32_MAX)
    return value->get<int32_t>();
  Fail(absl::StrCat("has no '", key, "' from 0 to 2147483647"));
  return 0;
}

void JsonObject::RefuseUnlessEmpty(const std::string& key) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr || *value == false || (!value->is_primitive() && value->empty()) || *value == "") return;
  Fail(absl::StrCat("has '", key, "', which is not supported"));
}

absl::Status JsonObject::Finish() {
  BOWLINE_RETURN_IF_ERROR(status_);
  for (const auto& [key, unused] : value_.items()) {
    if (!asked_.contains(key)) Fail(absl::StrCat("has '", key, "', which is not supported"));
  }
  return status_;
}

}  // namespace bowline
