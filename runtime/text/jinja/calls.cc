#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/text/jinja/evaluator.h"
#include "runtime/text/jinja/text.h"

namespace bowline::jinja {

Value Evaluator::Call(const Value& function, const Arguments& arguments) {
  if (function.is(Kind::kUndefined))
    return Fail(absl::StrCat("'", function.text ? function.string() : "", "' is undefined and cannot be called"));
  if (!function.is(Kind::kCallable)) return Fail(absl::StrCat(KindName(function), " cannot be called"));
  const Callable& callable = *function.callable;
  if (callable.macro != nullptr) return CallMacro(callable, arguments);
  if (!callable.self.is(Kind::kUndefined)) return Method(callable.self, callable.name, arguments);
  const Value* first = arguments.Get(0, callable.name == "raise_exception" ? "message" : "format");
  if (callable.name == "raise_exception") return Fail(absl::StrCat("the template says: ", first ? ToText(*first) : ""));
  if (callable.name == "strftime_now") {
    if (!clock_) return Fail("strftime_now needs a clock, which the caller has not given");
    if (first == nullptr || !first->is(Kind::kString)) return Fail("strftime_now needs a format");
    return Text(clock_(first->string()));
  }
  if (callable.name == "range") {
    int64_t bounds[3] = {0, 0, 1};
    size_t count = arguments.values.size();
    if (count < 1 || count > 3) return Fail("range takes one to three integers");
    for (size_t i = 0; i < count; ++i) {
      if (!arguments.values[i].is_integer()) return Fail("range takes one to three integers");
      bounds[count == 1 ? 1 : i] = arguments.values[i].integer;
    }
    if (bounds[2] == 0) return Fail("the step of range cannot be zero");
    Value::List elements;
    for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1];) {
      if (static_cast<int64_t>(elements.size()) >= limits_.range)
        return Fail(absl::StrCat("range has more than ", limits_.range, " elements"),
                    absl::StatusCode::kResourceExhausted);
      elements.push_back(Value::Int(i));
      if (__builtin_add_overflow(i, bounds[2], &i)) break;
    }
    Step(elements.size());
    return Value::OfList(std::move(elements));
  }
  Value::Dict items;  // namespace or dict
  if (!arguments.values.empty()) {
    if (!arguments.values[0].is(Kind::kDict))
      return Fail(absl::StrCat(callable.name, " takes a dict and named values"));
    items = *arguments.values[0].dict;
  }
  Value result = Value::OfDict(std::move(items), callable.name == "dict" ? Kind::kDict : Kind::kNamespace);
  for (const auto& [name, value] : arguments.named) {
    Value key = Value::String(name);
    result.Put(std::move(key), value, steps_);
  }
  Step(result.dict->size());
  if (result.is(Kind::kNamespace))
    for (const auto& item : *result.dict)
      if (item.second.holds_namespace || item.first.holds_namespace)
        return Fail("a namespace, or a value that holds one, cannot be put into a namespace here");
  return result;
}

Value Evaluator::CallMacro(const Callable& macro, const Arguments& arguments) {
  const Node& node = *macro.macro;
  if (arguments.values.size() > node.named.size())
    return Fail(
        absl::StrCat("macro ", macro.name, " takes ", node.named.size(), " arguments, not ", arguments.values.size()));
  for (const auto& [name, value] : arguments.named) {
    bool known = false;
    for (const auto& parameter : node.named) known = known || parameter.first == name;
    if (!known) return Fail(absl::StrCat("macro ", macro.name, " has no parameter '", name, "'"));
  }
  if (++macros_ > limits_.depth)
    return Fail(absl::StrCat("calls of macros are nested deeper than ", limits_.depth),
                absl::StatusCode::kResourceExhausted);
  std::string text;
  std::string* out = std::exchange(out_, &text);
  int line = line_;
  Frame frame(*this, macro.scope);
  for (size_t i = 0; i < node.named.size(); ++i) {
    const auto& [name, fallback] = node.named[i];
    const Value* given = arguments.Get(i, name);
    scope_->names[name] = given != nullptr ? *given : fallback != nullptr ? Eval(*fallback) : Value::Undefined(name);
  }
  Execute(node.body);
  line_ = line;
  out_ = out;
  --macros_;
  return Value::String(std::move(text));
}

Value Evaluator::Method(const Value& self, const std::string& name, const Arguments& arguments) {
  const Value* first = arguments.Get(0, "");
  const Value* second = arguments.Get(1, "");
  if (self.is(Kind::kDict)) {
    if (name == "get") {
      if (first == nullptr) return Fail("get needs a key");
      const Value* found = Find(self, *first);
      return found != nullptr ? *found : second != nullptr ? *second : Value::None();
    }
    Step(self.dict->size() * (name == "items" ? 3 : 1));
    Value::List elements;
    for (const auto& [key, value] : *self.dict)
      elements.push_back(name == "keys" ? key : name == "values" ? value : Value::OfList({key, value}, Kind::kTuple));
    return Value::OfList(std::move(elements));
  }
  if (!self.is(Kind::kString)) return Fail(absl::StrCat(KindName(self), " has no method '", name, "' here"));
  const std::string& text = self.string();
  Step(text.size() / 16);
  const std::string* set = first != nullptr && first->is(Kind::kString) ? &first->string() : nullptr;
  if (first != nullptr && set == nullptr && !first->is(Kind::kNone) && !first->is(Kind::kTuple))
    return Fail(absl::StrCat(name, " needs a string, not ", KindName(*first)));
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return Text(Strip(text, set, name != "rstrip", name != "lstrip"));
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize") return Filter(name, self, {});
  if (name == "startswith" || name == "endswith") {
    auto matches = [&](const Value& part) {
      return part.is(Kind::kString) &&
             (name == "endswith" ? absl::EndsWith(text, part.string()) : absl::StartsWith(text, part.string()));
    };
    if (first == nullptr || first->is(Kind::kNone)) return Fail(absl::StrCat(name, " needs a string"));
    bool found = false;
    if (first->is(Kind::kTuple))
      for (const Value& part : *first->list) found = found || matches(part);
    return Value::Bool(found || matches(*first));
  }
  if (name == "replace") return Filter(name, self, arguments);
  if (name == "split") {
    int64_t most = second != nullptr && second->is_integer() && second->integer >= 0 ? second->integer : INT64_MAX;
    Value::List parts;
    if (set == nullptr) {
      if (most != INT64_MAX) return Fail("split with a count needs a separator here");
      std::string word;
      std::string padded = text + " ";
      for (absl::string_view character : Characters(padded)) {
        if (!IsSpace(character))
          absl::StrAppend(&word, character);
        else if (!word.empty() && (Step(), !failed()))
          parts.push_back(Value::String(std::exchange(word, "")));
      }
      return Value::OfList(std::move(parts));
    }
    if (set->empty()) return Fail("split needs a separator that is not empty");
    size_t begin = 0;
    for (size_t end; most > 0 && !failed() && (end = FindText(text, *set, begin)) != text.npos; --most) {
      Step();
      parts.push_back(Value::String(text.substr(begin, end - begin)));
      begin = end + set->size();
    }
    parts.push_back(Value::String(text.substr(begin)));
    return Value::OfList(std::move(parts));
  }
  return Fail(absl::StrCat("str has no method '", name, "' here"));
}

}  // namespace bowline::jinja
