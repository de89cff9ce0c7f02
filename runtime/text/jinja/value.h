#ifndef BOWLINE_RUNTIME_TEXT_JINJA_VALUE_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_VALUE_H_

// Values of templates, with Python's truth, equality and printing.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bowline::jinja {

struct Node;
struct Scope;
struct Callable;

enum class Kind { kUndefined, kNone, kBool, kInt, kFloat, kString, kList, kTuple, kDict, kNamespace, kCallable };

struct Value {
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<Value, Value>>;  // in the order of insertion

  Kind kind = Kind::kUndefined;
  int64_t integer = 0;  // also of kBool
  double real = 0;
  std::shared_ptr<const std::string> text;  // of kUndefined: the name that is not known, or null
  std::shared_ptr<const List> list;         // of kTuple, too
  std::shared_ptr<Dict> dict;               // of kNamespace, too: the only value that templates may change
  std::shared_ptr<const Callable> callable;
  int nesting = 0;               // levels of lists and dicts below, when the value was made
  bool holds_namespace = false;  // at any level

  static Value None();
  static Value Bool(bool value);
  static Value Int(int64_t value);
  static Value Float(double value);
  static Value String(std::string value);
  static Value Undefined(absl::string_view name);
  static Value OfList(List value, Kind kind = Kind::kList);
  static Value OfDict(Dict value, Kind kind = Kind::kDict);
  static Value OfCallable(Callable callable);
  // Refuses JSON that is nested deeper than `levels`, and text that is not UTF-8.
  static absl::StatusOr<Value> OfJson(const nlohmann::ordered_json& json, int levels);

  bool is(Kind other) const { return kind == other; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  bool is_integer() const { return kind == Kind::kInt || kind == Kind::kBool; }
  bool is_number() const { return is_integer() || kind == Kind::kFloat; }
  double number() const { return kind == Kind::kFloat ? real : static_cast<double>(integer); }
  const std::string& string() const { return *text; }
  // Of a dict or a namespace; null where it has no such key. `steps` as for Equal.
  const Value* Find(const Value& key, int64_t& steps) const;
  void Put(Value key, Value element, int64_t& steps);
};

// A macro with the scope that it was defined in, a method with its object, or a function of the environment.
struct Callable {
  std::string name;
  Value self = {};
  const Node* macro = nullptr;
  Scope* scope = nullptr;
};

bool IsTrue(const Value& value);
// Subtract one per element and one per 64 bytes of text from `steps`; if it gets negative, results are meaningless.
bool Equal(const Value& left, const Value& right, int64_t& steps);
// Returns -1, 0 or 1; or 2 if the two values have no order.
int Compare(const Value& left, const Value& right, int64_t& steps);
absl::string_view KindName(const Value& value);

// str(value) and repr(value). A result that is longer than `limit` bytes was cut off.
std::string Str(const Value& value, size_t limit);
void AppendRepr(const Value& value, size_t limit, std::string& out);
// Appends json.dumps(value, ensure_ascii=False, indent=indent); indent < 0: None. False if JSON has no such value.
bool AppendJson(const Value& value, int indent, int level, size_t limit, std::string& out);

}  // namespace bowline::jinja

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_VALUE_H_
