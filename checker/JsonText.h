//===- JsonText.h - texts of plans in JSON *- C++ -*-===//

#ifndef BOWLINE_CHECKER_JSONTEXT_H
#define BOWLINE_CHECKER_JSONTEXT_H

#include "absl/strings/escaping.h"
#include "flatbuffers/flatbuffers.h"
#include <nlohmann/json.hpp>

#include <string>

namespace bowline::json_text {

/// Returns a name in a plan as escaped text. The name may hold any bytes.
inline std::string name(const flatbuffers::String *text) {
  return absl::Utf8SafeCEscape(absl::string_view(text->c_str(), text->size()));
}

/// Formats `value`, replacing bytes that are not UTF-8: names in plans may hold any bytes.
inline std::string dump(const nlohmann::ordered_json &value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Returns a string value without quotes, and any other value as JSON.
inline std::string text(const nlohmann::ordered_json &value) {
  return value.is_string() ? value.get<std::string>() : dump(value, -1);
}

} // namespace bowline::json_text

#endif // BOWLINE_CHECKER_JSONTEXT_H
