#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/text/jinja/evaluator.h"
#include "runtime/text/jinja/text.h"

namespace bowline::jinja {

Value Evaluator::Filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const Value* first = arguments.Get(0, "");
  if (name == "default" || name == "d") {
    const Value* boolean = arguments.Get(1, "boolean");
    const Value* fallback = arguments.Get(0, "default_value");
    if (!value.is(Kind::kUndefined) && !(boolean != nullptr && IsTrue(*boolean) && !IsTrue(value))) return value;
    return fallback != nullptr ? *fallback : Value::String("");
  }
  if (name == "tojson") {
    const Value* indent = arguments.Get(3, "indent");  // transformers' order: ensure_ascii, indent, ...
    if (arguments.values.size() > 0) return Fail("tojson takes 'indent' by its name only here");
    for (const auto& argument : arguments.named)
      if (argument.first != "indent" && argument.first != "ensure_ascii")
        return Fail(absl::StrCat("tojson has no argument '", argument.first, "' here"));
    const Value* ascii = arguments.Get(0, "ensure_ascii");
    if (ascii != nullptr && IsTrue(*ascii)) return Fail("tojson with ensure_ascii is not known here");
    if (indent != nullptr && !indent->is(Kind::kNone) &&
        (!indent->is_integer() || indent->integer < 0 || indent->integer > 64))
      return Fail("the indent of tojson is 0 to 64");
    int width = indent == nullptr || indent->is(Kind::kNone) ? -1 : static_cast<int>(indent->integer);
    std::string text;
    if (!AppendJson(value, width, 0, limits_.text_bytes, text))
      return Fail(absl::StrCat(KindName(value), " is no JSON"));
    return Text(std::move(text));
  }
  if (name == "safe" || name == "string") return Text(ToText(value));
  if (name == "trim") {
    const Value* set = arguments.Get(0, "chars");
    return Text(Strip(ToText(value), set != nullptr && set->is(Kind::kString) ? &set->string() : nullptr, true, true));
  }
  if (name == "upper" || name == "lower" || name == "capitalize") {
    std::string text = ToText(value);
    for (char c : text)
      if (static_cast<unsigned char>(c) >= 128) return Fail(absl::StrCat(name, " knows ASCII only here"));
    if (name == "upper")
      absl::AsciiStrToUpper(&text);
    else
      absl::AsciiStrToLower(&text);
    if (name == "capitalize" && !text.empty()) text[0] = absl::ascii_toupper(text[0]);
    return Text(std::move(text));
  }
  if (name == "length" || name == "count") {
    if (value.is(Kind::kDict)) return Value::Int(static_cast<int64_t>(value.dict->size()));
    if (value.is(Kind::kString)) {
      Step(value.string().size() / 16);
      return Value::Int(static_cast<int64_t>(Characters(value.string()).size()));
    }
    return Value::Int(static_cast<int64_t>(Iterate(value).size()));
  }
  if (name == "replace") {
    if (arguments.values.size() != 2 || !first->is(Kind::kString) || !arguments.values[1].is(Kind::kString))
      return Fail("replace needs two strings, and no count here");
    std::string text = ToText(value);
    const std::string& from = first->string();
    const std::string& to = arguments.values[1].string();
    if (from.empty()) return Fail("replace needs a string that is not empty here");
    if (to.size() > from.size() && text.size() / from.size() * (to.size() - from.size()) > limits_.text_bytes)
      return Fail(absl::StrCat("a text has more than ", limits_.text_bytes, " bytes"),
                  absl::StatusCode::kResourceExhausted);
    std::string out;
    size_t begin = 0;
    for (size_t at; (at = FindText(text, from, begin)) != text.npos; begin = at + from.size())
      absl::StrAppend(&out, absl::string_view(text).substr(begin, at - begin), to);
    return Text(absl::StrCat(out, absl::string_view(text).substr(begin)));
  }
  if (name == "items") {
    if (value.is(Kind::kUndefined)) return Value::OfList({});
    if (!value.is(Kind::kDict)) return Fail("items needs a dict");
    return Method(value, "items", {});
  }
  if (name == "join") {
    if (arguments.Get(1, "attribute") != nullptr) return Fail("join with an attribute is not known here");
    const Value* separator = arguments.Get(0, "d");
    std::string between = separator != nullptr ? ToText(*separator) : "", text;
    Value::List elements = Iterate(value);
    for (size_t i = 0; i < elements.size() && !failed(); ++i) {
      absl::StrAppend(&text, i > 0 ? between : "", ToText(elements[i]));
      Step(between.size() / 64);
      if (text.size() > limits_.text_bytes) break;
    }
    return Text(std::move(text));
  }
  if (name == "list") return Value::OfList(Iterate(value));
  if (name == "first" || name == "last") {
    Value::List elements = Iterate(value);
    if (elements.empty()) return Value::Undefined(name);
    return name == "first" ? elements.front() : elements.back();
  }
  if (name == "selectattr" || name == "rejectattr" || name == "select" || name == "reject") {
    bool attribute = name.size() > 6, keeps = name[0] == 's';
    size_t at = attribute ? 1 : 0;
    if (arguments.values.size() < at) return Fail(absl::StrCat(name, " needs an attribute"));
    Value::List kept;
    for (const Value& element : Iterate(value)) {
      if (failed()) break;
      Value tested = attribute ? Item(element, *first) : element;
      bool holds = IsTrue(tested);
      if (const Value* test = arguments.Get(at, "")) {
        Step(arguments.values.size());
        Arguments rest;
        for (size_t i = at + 1; i < arguments.values.size(); ++i) rest.values.push_back(arguments.values[i]);
        holds = Test(ToText(*test), tested, rest);
      }
      if (holds == keeps) kept.push_back(element);
    }
    return Value::OfList(std::move(kept));
  }
  if (name == "map") {
    const Value* attribute = arguments.Get(SIZE_MAX, "attribute");
    const Value* fallback = arguments.Get(SIZE_MAX, "default");
    if (attribute == nullptr && first == nullptr) return Fail("map needs a filter or an attribute");
    if (filters_ > 8) return Fail("filters of map are nested deeper than 8 here");
    ++filters_;
    Arguments rest;
    for (size_t i = 1; i < arguments.values.size(); ++i) rest.values.push_back(arguments.values[i]);
    Step(rest.values.size());
    Value::List mapped;
    for (const Value& element : Iterate(value)) {
      if (failed()) break;
      Value result = attribute ? Item(element, *attribute) : Filter(ToText(*first), element, rest);
      mapped.push_back(fallback && result.is(Kind::kUndefined) ? *fallback : std::move(result));
    }
    --filters_;
    return Value::OfList(std::move(mapped));
  }
  return Fail(absl::StrCat("the filter '", name, "' is not known"));
}

bool Evaluator::Test(const std::string& name, const Value& value, const Arguments& arguments) {
  if (name == "defined" || name == "undefined") return value.is(Kind::kUndefined) == (name == "undefined");
  if (name == "none") return value.is(Kind::kNone);
  if (name == "string") return value.is(Kind::kString);
  if (name == "mapping") return value.is(Kind::kDict);
  if (name == "number") return value.is_number();
  if (name == "integer") return value.is(Kind::kInt);
  if (name == "float") return value.is(Kind::kFloat);
  if (name == "boolean") return value.is(Kind::kBool);
  if (name == "true" || name == "false") return value.is(Kind::kBool) && (value.integer != 0) == (name == "true");
  if (name == "sequence" || name == "iterable")
    return value.is_sequence() || value.is(Kind::kString) || value.is(Kind::kDict) || value.is(Kind::kUndefined);
  if (name == "callable") return value.is(Kind::kCallable);
  bool odd = name == "odd";
  if (odd || name == "even") {
    if (!value.is_integer()) return Fail(absl::StrCat(name, " needs an integer")), false;
    return (value.integer % 2 != 0) == odd;
  }
  static const std::pair<const char*, const char*> kSigns[] = {
      {"eq", "=="}, {"equalto", "=="}, {"ne", "!="},         {"lt", "<"},  {"lessthan", "<"},
      {"le", "<="}, {"gt", ">"},       {"greaterthan", ">"}, {"ge", ">="}, {"in", "in"}};
  for (const auto& [known, sign] : kSigns)
    if (name == known) {
      if (arguments.values.size() != 1) return Fail(absl::StrCat("the test '", name, "' needs a value")), false;
      return Holds(sign, value, arguments.values[0]);
    }
  return Fail(absl::StrCat("the test '", name, "' is not known")), false;
}

}  // namespace bowline::jinja
