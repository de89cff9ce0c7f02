#ifndef BOWLINE_RUNTIME_BASE_JSON_H_
#define BOWLINE_RUNTIME_BASE_JSON_H_

// Parses JSON that may be hostile.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

struct JsonLimits {
  int max_depth = 32;                   // the most nested arrays and objects
  size_t max_values = size_t{1} << 22;  // scalars, arrays and objects; a value costs 16 bytes and more of memory
};

// Parses `text`, a whole JSON document in UTF-8. Stricter than the library: a key that appears twice in an object is an
// error (the library keeps the last), as are nesting and sizes beyond `limits` and numbers beyond the range of f64.
// Errors are kInvalidArgument; the message begins with `what` (a file name) and names the place. Nothing throws.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view what, JsonLimits limits = {});

// Reads and parses a file of at most `max_bytes`.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path, size_t max_bytes = size_t{64} << 20,
                                            JsonLimits limits = {});

// "a string", "an array", ... for messages about a value of the wrong type.
std::string DescribeJsonType(const nlohmann::json& value);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_BASE_JSON_H_
