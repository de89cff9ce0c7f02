#include "runtime/text/jinja/value.h"

#include <charconv>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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
Value Value::OfList(List elements, Kind kind) {
  Value value;
  value.kind = kind;
  value.list = std::make_shared<const List>(std::move(elements));
  return value;
}
Value Value::OfDict(Dict items, Kind kind) {
  Value value;
  value.kind = kind;
  value.dict = std::make_shared<Dict>(std::move(items));
  return value;
}

Value Value::OfJson(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return Bool(json.get<bool>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) return Float(json.get<double>());
  if (json.is_number_integer()) return Int(json.get<int64_t>());
  if (json.is_number_float()) return Float(json.get<double>());
  if (json.is_string()) return String(json.get<std::string>());
  if (json.is_array()) {
    List elements;
    for (const auto& element : json) elements.push_back(OfJson(element));
    return OfList(std::move(elements));
  }
  if (json.is_object()) {
    Dict items;
    for (const auto& [key, element] : json.items()) items.emplace_back(String(key), OfJson(element));
    return OfDict(std::move(items));
  }
  return None();
}

const Value* Value::Find(const Value& key) const {
  for (const auto& [name, value] : *dict)
    if (Equal(name, key)) return &value;
  return nullptr;
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

bool Equal(const Value& left, const Value& right) {
  if (left.is_integer() && right.is_integer()) return left.integer == right.integer;
  if (left.is_number() && right.is_number()) return left.number() == right.number();
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::kString:
      return *left.text == *right.text;
    case Kind::kList:
    case Kind::kTuple:
      if (left.list->size() != right.list->size()) return false;
      for (size_t i = 0; i < left.list->size(); ++i)
        if (!Equal((*left.list)[i], (*right.list)[i])) return false;
      return true;
    case Kind::kDict:
      if (left.dict->size() != right.dict->size()) return false;
      for (const auto& [key, value] : *left.dict) {
        const Value* other = right.Find(key);
        if (other == nullptr || !Equal(value, *other)) return false;
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

int Compare(const Value& left, const Value& right) {
  if (left.is_integer() && right.is_integer())
    return left.integer < right.integer ? -1 : left.integer > right.integer ? 1 : 0;
  if (left.is_number() && right.is_number())
    return left.number() < right.number() ? -1 : left.number() > right.number() ? 1 : 0;
  if (left.is(Kind::kString) && right.is(Kind::kString)) {
    int order = left.text->compare(*right.text);  // UTF-8 keeps the order of code points
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (left.is_sequence() && left.kind == right.kind) {
    for (size_t i = 0; i < left.list->size() && i < right.list->size(); ++i)
      if (int order = Compare((*left.list)[i], (*right.list)[i]); order != 0) return order;
    return Compare(Value::Int(left.list->size()), Value::Int(right.list->size()));
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
