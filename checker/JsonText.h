//===- JsonText.h - texts of plans in JSON *- C++ -*-===//

#ifndef BOWLINE_CHECKER_JSONTEXT_H
#define BOWLINE_CHECKER_JSONTEXT_H

#include "absl/strings/escaping.h"
#include "flatbuffers/flatbuffers.h"
#include <nlohmann/json.hpp>

#include <string>

namespace bowline::json_text {

/// A name of the file, which may hold any bytes, escaped.
inline std::string name(const flatbuffers::String *text) {
  return absl::Utf8SafeCEscape(absl::string_view(text->c_str(), text->size()));
}

/// Names in plans are bytes, which need not be UTF-8.
inline std::string dump(const nlohmann::ordered_json &value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

/// A string as it is, anything else as JSON.
inline std::string text(const nlohmann::ordered_json &value) {
  return value.is_string() ? value.get<std::string>() : dump(value, -1);
}

} // namespace bowline::json_text

#endif // BOWLINE_CHECKER_JSONTEXT_H
