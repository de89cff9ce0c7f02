#ifndef BOWLINE_RUNTIME_SERVE_REQUEST_FIELDS_H_
#define BOWLINE_RUNTIME_SERVE_REQUEST_FIELDS_H_

// Reads the fields of a request. Fields that are read are honoured; others must have values that change nothing.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/serve/api_error.h"

namespace bowline::serve {

// By name: the values with which a field that is not honoured changes nothing, besides null and empty ones.
using FieldDefaults = std::map<std::string, std::vector<nlohmann::json>, std::less<>>;

// Make an error reply of status 400 about the field `param`.
ApiError WrongField(std::string param, std::string message, std::string code);
ApiError WrongType(const std::string& param, std::string message);
ApiError WrongValue(const std::string& param, std::string message);

// Returns whether the value is null or an empty text, array or object: the field then counts as absent.
bool IsEmpty(const nlohmann::json& value);

// Returns a float such as 1.0 as an integer, because JSON does not tell it from 1; other values unchanged.
nlohmann::json AsWhole(const nlohmann::json& value);

class RequestObject {
 public:
  // `body`, `defaults` and `ignored` outlive this object. The fields named in `ignored` may have any value. Errors name
  // a field with `prefix` before its name.
  RequestObject(const nlohmann::json& body, const FieldDefaults& defaults, const std::vector<std::string>& ignored,
                std::string prefix = "")
      : body_(body), defaults_(defaults), ignored_(ignored), prefix_(std::move(prefix)) {}

  // Returns a field, which counts as honoured from now on. Null if it is absent or empty.
  const nlohmann::json* Find(const char* name);
  // Like Find, for a field whose empty text, array or object has a meaning.
  const nlohmann::json* FindAlsoEmpty(const char* name);

  // These leave `*to` unchanged if the field is absent or empty. They return an error if its type is wrong.
  std::optional<ApiError> ReadBool(const char* name, bool* to);
  std::optional<ApiError> ReadText(const char* name, std::string* to);
  // Reads a whole number from `least` to `most`. The message about any other value ends with `more`.
  template <typename Integer>
  std::optional<ApiError> ReadInteger(const char* name, int64_t least, int64_t most, std::optional<Integer>* to,
                                      absl::string_view more = "") {
    int64_t value = 0;
    bool found = false;
    if (auto error = ReadWhole(name, least, most, more, &value, &found)) return error;
    if (found) *to = static_cast<Integer>(value);
    return std::nullopt;
  }

  // Returns an error about a field that was neither read nor ignored, and has no default or empty value; else nothing.
  std::optional<ApiError> CheckRest() const;

  // The names of the fields that were looked up.
  const std::vector<std::string>& read() const { return read_; }

 private:
  std::optional<ApiError> ReadWhole(const char* name, int64_t least, int64_t most, absl::string_view more,
                                    int64_t* value, bool* found);

  const nlohmann::json& body_;
  const FieldDefaults& defaults_;
  const std::vector<std::string>& ignored_;
  const std::string prefix_;
  std::vector<std::string> read_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_REQUEST_FIELDS_H_
