#ifndef BOWLINE_RUNTIME_TEXT_JSON_OBJECT_H_
#define BOWLINE_RUNTIME_TEXT_JSON_OBJECT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// Reads a JSON object in which every key must be known. Getters keep the first error; Finish returns it, or else an
// error about a key that no getter asked for.
class JsonObject {
 public:
  // `where` names the object in messages.
  JsonObject(const nlohmann::json& value, std::string where);

  // Null if the key is missing or its value is null.
  const nlohmann::json* Find(const std::string& key);
  std::string String(const std::string& key, absl::string_view otherwise);
  std::string RequiredString(const std::string& key);
  bool Bool(const std::string& key, bool otherwise);
  // A required number from 0 to 2^31 - 1.
  int32_t Number(const std::string& key);
  // Marks the key as known; its value does not matter here.
  void Ignore(const std::string& key) { asked_.insert(key); }
  // Reports an error unless the key is missing or its value is null, false or empty.
  void RefuseUnlessEmpty(const std::string& key);
  void Fail(absl::string_view message);

  std::string Where(absl::string_view key) const { return absl::StrCat(where_, ".", key); }
  absl::Status Finish();

 private:
  const nlohmann::json& value_;
  const std::string where_;
  absl::flat_hash_set<std::string> asked_;
  absl::Status status_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_JSON_OBJECT_H_
