#include "runtime/serve/request_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/json.h"

namespace bowline::serve {

using Value = nlohmann::json;

namespace {
constexpr double kMostExactInteger = 9007199254740992;  // 2^53: a greater double may have been another number
}

ApiError WrongField(std::string param, std::string message, std::string code) {
  ApiError error;
  error.message = std::move(message);
  error.param = std::move(param);
  error.code = std::move(code);
  return error;
}

ApiError WrongType(const std::string& param, std::string message) {
  return WrongField(param, std::move(message), "invalid_type");
}
ApiError WrongValue(const std::string& param, std::string message) {
  return WrongField(param, std::move(message), "invalid_value");
}

bool IsEmpty(const Value& value) {
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

const Value* RequestObject::FindAlsoEmpty(const char* name) {
  read_.emplace_back(name);
  const auto found = body_.find(name);
  return found == body_.end() || found->is_null() ? nullptr : &*found;
}

const Value* RequestObject::Find(const char* name) {
  const Value* value = FindAlsoEmpty(name);
  return value == nullptr || IsEmpty(*value) ? nullptr : value;
}

std::optional<ApiError> RequestObject::ReadBool(const char* name, bool* to) {
  const Value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) {
    const std::string field = prefix_ + name;
    return WrongType(field, absl::StrCat("'", field, "' is ", DescribeJsonType(*value), ", and not a boolean"));
  }
  *to = value->get<bool>();
  return std::nullopt;
}

std::optional<ApiError> RequestObject::ReadText(const char* name, std::string* to) {
  const Value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    const std::string field = prefix_ + name;
    return WrongType(field, absl::StrCat("'", field, "' is ", DescribeJsonType(*value), ", and not a text"));
  }
  *to = value->get<std::string>();
  return std::nullopt;
}

Value AsWhole(const Value& value) {
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  if (std::abs(number) > kMostExactInteger || std::trunc(number) != number) return value;
  return static_cast<int64_t>(number);
}

std::optional<ApiError> RequestObject::ReadWhole(const char* name, int64_t least, int64_t most, absl::string_view more,
                                                 int64_t* number, bool* found) {
  const Value* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const Value whole = AsWhole(*value);
  const bool huge = whole.is_number_unsigned() ? whole.get<uint64_t>() > static_cast<uint64_t>(most)
                                               : whole.is_number_integer() && whole.get<int64_t>() > most;
  if (!whole.is_number_integer() || huge || whole.get<int64_t>() < least) {
    const std::string field = prefix_ + name;
    return WrongField(field, absl::StrCat("'", field, "' is no whole number from ", least, " to ", most, more),
                      whole.is_number_integer() ? "invalid_value" : "invalid_type");
  }
  *number = whole.get<int64_t>();
  *found = true;
  return std::nullopt;
}

std::optional<ApiError> RequestObject::CheckRest() const {
  const auto holds = [](const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  for (const auto& [name, value] : body_.items()) {
    if (IsEmpty(value) || holds(ignored_, name) || holds(read_, name)) continue;
    const auto known = defaults_.find(name);
    if (known != defaults_.end() && holds(known->second, value)) continue;
    const std::string field = prefix_ + name;
    return WrongField(
        field,
        absl::StrCat("this server does not support ", known != defaults_.end() ? "this value of '" : "the field '",
                     field, "'; leave it out"),
        known != defaults_.end() ? "unsupported_value" : "unknown_parameter");
  }
  return std::nullopt;
}

}  // namespace bowline::serve
