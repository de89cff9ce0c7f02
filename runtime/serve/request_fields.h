#ifndef BOWLINE_RUNTIME_SERVE_REQUEST_FIELDS_H_
#define BOWLINE_RUNTIME_SERVE_REQUEST_FIELDS_H_

// The fields of an object of a request: those that are read are honoured, the others have to change nothing.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/serve/api_request.h"

namespace bowline::serve {

// By name, the values under which a field that is not honoured changes nothing, beside those that are empty.
using FieldDefaults = std::map<std::string, std::vector<nlohmann::json>, std::less<>>;

// Errors of status 400 about the field `param`.
ApiError WrongField(std::string param, std::string message, std::string code);
ApiError WrongType(const std::string& param, std::string message);
ApiError WrongValue(const std::string& param, std::string message);

// Null, or a text, an array or an object without anything in it: as if the field were absent.
bool IsEmpty(const nlohmann::json& value);

// A number such as 1.0 as an integer, which JSON does not tell apart from 1; other values as they are.
nlohmann::json AsWhole(const nlohmann::json& value);

class RequestObject {
 public:
  // `body`, `defaults` and `ignored` outlive this; `ignored` are names of fields that may have any value. Errors name
  // fields with `prefix` before.
  RequestObject(const nlohmann::json& body, const FieldDefaults& defaults, const std::vector<std::string>& ignored,
                std::string prefix = "")
      : body_(body), defaults_(defaults), ignored_(ignored), prefix_(std::move(prefix)) {}

  // The field is honoured. Null where it is absent or empty.
  const nlohmann::json* Find(const char* name);
  // As Find, of a field whose empty text, array or object says something.
  const nlohmann::json* FindAlsoEmpty(const char* name);

  // Each of these leaves `*to` as it is where the field is absent or empty.
  std::optional<ApiError> ReadBool(const char* name, bool* to);
  std::optional<ApiError> ReadText(const char* name, std::string* to);
  // A whole number from `least` to `most`; `more` is said of others.
  template <typename Integer>
  std::optional<ApiError> ReadInteger(const char* name, int64_t least, int64_t most, std::optional<Integer>* to,
                                      absl::string_view more = "") {
    int64_t value = 0;
    bool found = false;
    if (auto error = ReadWhole(name, least, most, more, &value, &found)) return error;
    if (found) *to = static_cast<Integer>(value);
    return std::nullopt;
  }

  // An error that names a field that was not read, and has neither a default nor an empty value.
  std::optional<ApiError> CheckRest() const;

  // Names of the fields that were looked for.
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
