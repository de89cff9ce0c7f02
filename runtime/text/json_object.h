#ifndef BOWLINE_RUNTIME_TEXT_JSON_OBJECT_H_
#define BOWLINE_RUNTIME_TEXT_JSON_OBJECT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline {

// Reads an object of which every key has to be known. Getters note the first error; Finish returns it, or refuses a key
// that nobody asked for.
class JsonObject {
 public:
  // `where` is for messages.
  JsonObject(const nlohmann::json& value, std::string where);

  // nullptr where the key is missing or null.
  const nlohmann::json* Find(const std::string& key);
  std::string String(const std::string& key, absl::string_view otherwise);
  std::string RequiredString(const std::string& key);
  bool Bool(const std::string& key, bool otherwise);
  // From 0 to 2^31 - 1.
  int32_t Number(const std::string& key);
  // The key says nothing that matters here.
  void Ignore(const std::string& key) { asked_.insert(key); }
  // Refuses the key where its value is neither missing, nor null, nor false, nor empty.
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
