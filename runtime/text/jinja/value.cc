#include "runtime/text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/text/jinja/text.h"

namespace bowline::jinja {

Value Value::None() {
  Value value;
  value.kind = Kind::kNone;
  return value;
}
Value Value::Bool(bool truth) {
  Value value;
  value.kind = Kind::kBool;
  value.integer = truth;
  return value;
}
Value Value::Int(int64_t number) {
  Value value;
  value.kind = Kind::kInt;
  value.integer = number;
  return value;
}
Value Value::Float(double number) {
  Value value;
  value.kind = Kind::kFloat;
  value.real = number;
  return value;
}
Value Value::String(std::string text) {
  Value value;
  value.kind = Kind::kString;
  value.text = std::make_shared<const std::string>(std::move(text));
  return value;
}
Value Value::Undefined(absl::string_view name) {
  Value value;
  value.text = std::make_shared<const std::string>(name);
  return value;
}
static void NoteInside(Value& value, const Value& inside) {
  value.nesting = std::max(value.nesting, inside.nesting + 1);
  value.holds_namespace = value.holds_namespace || inside.holds_namespace;
}

Value Value::OfList(List elements, Kind kind) {
  Value value;
  value.kind = kind;
  value.nesting = 1;
  for (const Value& element : elements) NoteInside(value, element);
  value.list = std::make_shared<const List>(std::move(elements));
  return value;
}
Value Value::OfDict(Dict items, Kind kind) {
  Value value;
  value.kind = kind;
  value.nesting = 1;
  value.holds_namespace = kind == Kind::kNamespace;
  for (const auto& [key, element] : items) {
    NoteInside(value, key);
    NoteInside(value, element);
  }
  value.dict = std::make_shared<Dict>(std::move(items));
  return value;
}
Value Value::OfCallable(Callable callable) {
  Value value;
  value.kind = Kind::kCallable;
  NoteInside(value, callable.self);
  value.callable = std::make_shared<const Callable>(std::move(callable));
  return value;
}

static absl::StatusOr<Value> TextOfJson(const std::string& text) {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("a text that is not UTF-8");
  return Value::String(text);
}

absl::StatusOr<Value> Value::OfJson(const nlohmann::ordered_json& json, int levels) {
  if (json.is_boolean()) return Bool(json.get<bool>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) return Float(json.get<double>());
  if (json.is_number_integer()) return Int(json.get<int64_t>());
  if (json.is_number_float()) return Float(json.get<double>());
  if (json.is_string()) return TextOfJson(json.get_ref<const std::string&>());
  if (json.is_null()) return None();
  if (!json.is_structured()) return absl::InvalidArgumentError("a value that JSON does not have");
  if (levels == 0) return absl::ResourceExhaustedError("too many levels of lists and dicts in each other");
  List elements;
  Dict items;
  for (const auto& [key, child] : json.items()) {
    absl::StatusOr<Value> element = OfJson(child, levels - 1);
    if (!element.ok()) return element;
    if (json.is_array()) {
      elements.push_back(*std::move(element));
    } else {
      absl::StatusOr<Value> name = TextOfJson(key);
      if (!name.ok()) return name;
      items.emplace_back(*std::move(name), *std::move(element));
    }
  }
  return json.is_array() ? OfList(std::move(elements)) : OfDict(std::move(items));
}

const Value* Value::Find(const Value& key, int64_t& steps) const {
  for (const auto& [name, value] : *dict) {
    if (steps < 0) break;
    if (Equal(name, key, steps)) return &value;
  }
  return nullptr;
}

void Value::Put(Value key, Value element, int64_t& steps) {
  NoteInside(*this, key);
  NoteInside(*this, element);
  for (auto& [name, old] : *dict) {
    if (!Equal(name, key, steps)) continue;
    old = std::move(element);
    return;
  }
  dict->emplace_back(std::move(key), std::move(element));
}

bool IsTrue(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0;
    case Kind::kString:
      return !value.text->empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.list->empty();
    case Kind::kDict:
      return !value.dict->empty();
    default:
      return true;
  }
}

bool Equal(const Value& left, const Value& right, int64_t& steps) {
  if (--steps < 0) return false;
  if (left.is_integer() && right.is_integer()) return left.integer == right.integer;
  if (left.is_number() && right.is_number()) return left.number() == right.number();
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::kString:
      if (left.text->size() != right.text->size()) return false;
      steps -= static_cast<int64_t>(left.text->size() / 64);
      return *left.text == *right.text;
    case Kind::kList:
    case Kind::kTuple:
      if (left.list->size() != right.list->size()) return false;
      for (size_t i = 0; i < left.list->size(); ++i)
        if (!Equal((*left.list)[i], (*right.list)[i], steps)) return false;
      return true;
    case Kind::kDict:
      if (left.dict->size() != right.dict->size()) return false;
      for (const auto& [key, value] : *left.dict) {
        const Value* other = right.Find(key, steps);
        if (other == nullptr || !Equal(value, *other, steps)) return false;
      }
      return true;
    case Kind::kNamespace:
      return left.dict == right.dict;
    case Kind::kCallable:
      return left.callable == right.callable;
    default:
      return true;
  }
}

int Compare(const Value& left, const Value& right, int64_t& steps) {
  if (--steps < 0) return 0;
  auto order = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; };
  if (left.is_integer() && right.is_integer()) return order(left.integer, right.integer);
  if (left.is_number() && right.is_number()) return order(left.number(), right.number());
  if (left.is(Kind::kString) && right.is(Kind::kString)) {
    steps -= static_cast<int64_t>(std::min(left.text->size(), right.text->size()) / 64);
    return order(left.text->compare(*right.text), 0);  // UTF-8 keeps the order of code points
  }
  if (left.is_sequence() && left.kind == right.kind) {
    for (size_t i = 0; i < left.list->size() && i < right.list->size(); ++i)
      if (!Equal((*left.list)[i], (*right.list)[i], steps))
        return steps < 0 ? 0 : Compare((*left.list)[i], (*right.list)[i], steps);
    return order(left.list->size(), right.list->size());
  }
  return 2;
}

absl::string_view KindName(const Value& value) {
  static constexpr absl::string_view kNames[] = {"undefined", "None",  "bool", "int",       "float",   "str",
                                                 "list",      "tuple", "dict", "namespace", "function"};
  return kNames[static_cast<int>(value.kind)];
}

static std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  double size = std::fabs(value);
  auto form = size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, form).ptr);
  if (form == std::chars_format::fixed && !absl::StrContains(text, '.')) text += ".0";
  return text;
}

void AppendRepr(const Value& value, size_t limit, std::string& out) {
  if (out.size() > limit) return;
  if (value.is(Kind::kString)) {
    char quote = absl::StrContains(*value.text, '\'') && !absl::StrContains(*value.text, '"') ? '"' : '\'';
    out += quote;
    for (char c : *value.text) {
      if (c == quote || c == '\\')
        absl::StrAppend(&out, "\\", std::string(1, c));
      else if (c == '\n')
        out += "\\n";
      else if (c == '\r')
        out += "\\r";
      else if (c == '\t')
        out += "\\t";
      else if (static_cast<unsigned char>(c) < 32 || c == 127)
        absl::StrAppendFormat(&out, "\\x%02x", c);
      else
        out += c;
    }
    out += quote;
  } else if (value.is_sequence()) {
    bool tuple = value.is(Kind::kTuple);
    out += tuple ? '(' : '[';
    absl::string_view separator = "";
    for (const Value& element : *value.list) {
      absl::StrAppend(&out, separator);
      AppendRepr(element, limit, out);
      if (out.size() > limit) return;
      separator = ", ";
    }
    out += tuple ? value.list->size() == 1 ? ",)" : ")" : "]";
  } else if (value.is(Kind::kDict)) {
    out += '{';
    absl::string_view separator = "";
    for (const auto& [key, element] : *value.dict) {
      absl::StrAppend(&out, separator);
      AppendRepr(key, limit, out);
      out += ": ";
      AppendRepr(element, limit, out);
      if (out.size() > limit) return;
      separator = ", ";
    }
    out += '}';
  } else {
    out += value.is(Kind::kUndefined) ? "Undefined" : Str(value, limit);
  }
}

std::string Str(const Value& value, size_t limit) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.integer ? "True" : "False";
    case Kind::kInt:
      return absl::StrCat(value.integer);
    case Kind::kFloat:
      return FloatRepr(value.real);
    case Kind::kString:
      return *value.text;
    case Kind::kNamespace:
      return "<Namespace>";
    case Kind::kCallable:
      return absl::StrCat("<function ", value.callable->name, ">");
    default: {
      std::string out;
      AppendRepr(value, limit, out);
      return out;
    }
  }
}

static void AppendJsonString(absl::string_view text, std::string& out) {
  out += '"';
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 32)
          absl::StrAppendFormat(&out, "\\u%04x", c);
        else
          out += c;
    }
  }
  out += '"';
}

bool AppendJson(const Value& value, int indent, int level, size_t limit, std::string& out) {
  if (out.size() > limit) return true;
  auto line = [&](int depth) {
    if (indent >= 0) absl::StrAppend(&out, "\n", std::string(static_cast<size_t>(indent) * depth, ' '));
  };
  absl::string_view comma = indent >= 0 ? "," : ", ", separator = "";
  switch (value.kind) {
    case Kind::kNone:
      out += "null";
      return true;
    case Kind::kBool:
      out += value.integer ? "true" : "false";
      return true;
    case Kind::kInt:
      out += Str(value, limit);
      return true;
    case Kind::kFloat:
      out += std::isnan(value.real)   ? "NaN"
             : std::isinf(value.real) ? value.real < 0 ? "-Infinity" : "Infinity"
                                      : FloatRepr(value.real);
      return true;
    case Kind::kString:
      AppendJsonString(*value.text, out);
      return true;
    case Kind::kList:
    case Kind::kTuple:
      if (value.list->empty()) return out += "[]", true;
      out += '[';
      for (const Value& element : *value.list) {
        absl::StrAppend(&out, separator);
        separator = comma;
        line(level + 1);
        if (!AppendJson(element, indent, level + 1, limit, out)) return false;
        if (out.size() > limit) return true;
      }
      line(level);
      out += ']';
      return true;
    case Kind::kDict:
      if (value.dict->empty()) return out += "{}", true;
      out += '{';
      for (const auto& [key, element] : *value.dict) {
        absl::StrAppend(&out, separator);
        separator = comma;
        line(level + 1);
        if (key.is(Kind::kString)) {
          AppendJsonString(*key.text, out);
        } else {
          out += '"';
          if (!key.is_number() && !key.is(Kind::kNone)) return false;
          AppendJson(key, -1, 0, limit, out);
          out += '"';
        }
        out += ": ";
        if (!AppendJson(element, indent, level + 1, limit, out)) return false;
        if (out.size() > limit) return true;
      }
      line(level);
      out += '}';
      return true;
    default:
      return false;
  }
}

}  // namespace bowline::jinja
