#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/text/jinja/evaluator.h"
#include "runtime/text/jinja/text.h"

namespace bowline::jinja {

// Of Python's strings; a call of one that is not known here is an error, as anything else would be another rendering.
static constexpr absl::string_view kTextMethods =
    " capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip "
    "maketrans "
    "partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines "
    "startswith "
    "strip swapcase title translate upper zfill ";

Value Evaluator::Eval(const Node& node) {
  Step();
  if (failed()) return Value();
  Level level(*this);
  Value value = failed() ? Value() : EvalNode(node);
  if (value.nesting > limits_.nesting)
    return Fail(absl::StrCat("a value has more than ", limits_.nesting, " levels of lists and dicts in each other"),
                absl::StatusCode::kResourceExhausted);
  return value;
}

Value Evaluator::EvalNode(const Node& node) {
  auto operand = [&](size_t i) { return Eval(*node.parts[i]); };
  switch (node.kind) {
    case NodeKind::kConstant:
      return node.value;
    case NodeKind::kName:
      return Lookup(node.text);
    case NodeKind::kList:
    case NodeKind::kTuple: {
      Value::List elements;
      for (const auto& part : node.parts) elements.push_back(Eval(*part));
      return Value::OfList(std::move(elements), node.kind == NodeKind::kList ? Kind::kList : Kind::kTuple);
    }
    case NodeKind::kDict: {
      Value dict = Value::OfDict({});
      for (size_t i = 0; i + 1 < node.parts.size() && !failed(); i += 2) {
        Value key = operand(i), value = operand(i + 1);
        dict.Put(std::move(key), std::move(value), steps_);
      }
      return dict;
    }
    case NodeKind::kAttribute: {
      Value object = operand(0);
      return failed() ? Value() : Attribute(object, node.text);
    }
    case NodeKind::kItem: {
      Value object = operand(0), key = operand(1);
      return failed() ? Value() : Item(object, key);
    }
    case NodeKind::kSlice:
      return Slice(node);
    case NodeKind::kCall: {
      Value function = operand(0);
      Arguments arguments = EvalArguments(node, 1);
      return failed() ? Value() : Call(function, arguments);
    }
    case NodeKind::kFilter: {
      Value value = operand(0);
      Arguments arguments = EvalArguments(node, 1);
      return failed() ? Value() : Filter(node.text, value, arguments);
    }
    case NodeKind::kTest: {
      Value value = operand(0);
      Arguments arguments = EvalArguments(node, 1);
      return failed() ? Value() : Value::Bool(Test(node.text, value, arguments));
    }
    case NodeKind::kUnary: {
      Value value = operand(0);
      if (failed()) return Value();
      if (node.text == "not") return Value::Bool(!IsTrue(value));
      if (value.is(Kind::kFloat)) return Value::Float(node.text == "-" ? -value.real : value.real);
      if (!value.is_integer()) return Fail(absl::StrCat("'", node.text, "' has no meaning for ", KindName(value)));
      if (value.integer == INT64_MIN) return Fail("a number has more than 64 bits");
      return Value::Int(node.text == "-" ? -value.integer : value.integer);
    }
    case NodeKind::kBinary:
      return Binary(node);
    case NodeKind::kCompare: {
      Value left = operand(0);
      for (size_t i = 0; i < node.operators.size(); ++i) {
        Value right = operand(i + 1);
        if (failed() || !Holds(node.operators[i], left, right)) return Value::Bool(false);
        left = std::move(right);
      }
      return Value::Bool(true);
    }
    case NodeKind::kAnd: {
      Value left = operand(0);
      return IsTrue(left) ? operand(1) : left;
    }
    case NodeKind::kOr: {
      Value left = operand(0);
      return IsTrue(left) ? left : operand(1);
    }
    case NodeKind::kChoice:
      if (IsTrue(operand(0))) return operand(1);
      return node.parts[2] == nullptr ? Value::Undefined("an inline if without else") : operand(2);
    default:
      return Fail("a statement stands where an expression is expected");
  }
}

Arguments Evaluator::EvalArguments(const Node& node, size_t first) {
  Arguments arguments;
  for (size_t i = first; i < node.parts.size(); ++i) arguments.values.push_back(Eval(*node.parts[i]));
  for (const auto& [name, part] : node.named) arguments.named.emplace_back(name, Eval(*part));
  return arguments;
}

Value Evaluator::Lookup(const std::string& name) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent)
    if (auto found = scope->names.find(name); found != scope->names.end()) return found->second;
  for (absl::string_view known : {"range", "namespace", "dict", "raise_exception", "strftime_now"})
    if (name == known) {
      return Value::OfCallable({.name = name});
    }
  return Value::Undefined(name);
}

bool Evaluator::Holds(absl::string_view sign, const Value& left, const Value& right) {
  if (sign == "==") return Same(left, right);
  if (sign == "!=") return !Same(left, right);
  if (absl::EndsWith(sign, "in")) {
    bool found = false;
    if (right.is(Kind::kString)) {
      if (!left.is(Kind::kString))
        Fail(absl::StrCat("'in <string>' needs a string, not ", KindName(left)));
      else
        Step(right.string().size() / 64), found = FindText(right.string(), left.string()) != std::string::npos;
    } else if (right.is(Kind::kDict)) {
      found = Find(right, left) != nullptr;
    } else {
      for (const Value& element : Iterate(right)) found = found || Same(element, left);
    }
    return found == (sign == "in");
  }
  int order = Compare(left, right, steps_);
  Step(0);
  if (order == 2)
    return Fail(absl::StrCat("'", sign, "' has no meaning for ", KindName(left), " and ", KindName(right))), false;
  return sign == "<" ? order < 0 : sign == "<=" ? order <= 0 : sign == ">" ? order > 0 : order >= 0;
}

Value Evaluator::Binary(const Node& node) {
  Value left = Eval(*node.parts[0]), right = Eval(*node.parts[1]);
  if (failed()) return Value();
  const std::string& sign = node.text;
  if (sign == "~") return Text(absl::StrCat(ToText(left), ToText(right)));
  if (left.is(Kind::kUndefined) || right.is(Kind::kUndefined)) {
    const Value& missing = left.is(Kind::kUndefined) ? left : right;
    return Fail(absl::StrCat("'", missing.text ? missing.string() : "", "' is undefined"));
  }
  if (sign == "+" && left.is(Kind::kString) && right.is(Kind::kString)) return Text(left.string() + right.string());
  if (sign == "+" && left.is_sequence() && left.kind == right.kind) {
    Value::List elements = *left.list;
    elements.insert(elements.end(), right.list->begin(), right.list->end());
    Step(elements.size());
    return Value::OfList(std::move(elements), left.kind);
  }
  if (sign == "*" && (left.is(Kind::kString) || right.is(Kind::kString))) {
    const Value& text = left.is(Kind::kString) ? left : right;
    const Value& count = left.is(Kind::kString) ? right : left;
    if (!count.is_integer()) return Fail("a string can be multiplied by an integer only");
    if (count.integer <= 0 || text.string().empty()) return Value::String("");
    if (static_cast<uint64_t>(count.integer) > limits_.text_bytes / text.string().size())
      return Fail(absl::StrCat("a text has more than ", limits_.text_bytes, " bytes"),
                  absl::StatusCode::kResourceExhausted);
    std::string out;
    for (int64_t i = 0; i < count.integer; ++i) out += text.string();
    return Text(std::move(out));
  }
  if (!left.is_number() || !right.is_number())
    return Fail(absl::StrCat("'", sign, "' has no meaning for ", KindName(left), " and ", KindName(right)));
  bool divides = sign == "/" || sign == "//" || sign == "%";
  if (divides && right.number() == 0) return Fail("division by zero");
  if (!left.is_integer() || !right.is_integer() || sign == "/" || (sign == "**" && right.integer < 0)) {
    double a = left.number(), b = right.number();
    if (sign == "+") return Value::Float(a + b);
    if (sign == "-") return Value::Float(a - b);
    if (sign == "*") return Value::Float(a * b);
    if (sign == "/") return Value::Float(a / b);
    if (sign == "//") return Value::Float(std::floor(a / b));
    if (sign == "%") return Value::Float(std::fmod(std::fmod(a, b) + b, b));
    return Value::Float(std::pow(a, b));
  }
  int64_t a = left.integer, b = right.integer, result = 0;
  bool overflows = false;
  if (sign == "+")
    overflows = __builtin_add_overflow(a, b, &result);
  else if (sign == "-")
    overflows = __builtin_sub_overflow(a, b, &result);
  else if (sign == "*")
    overflows = __builtin_mul_overflow(a, b, &result);
  else if (sign == "**") {
    if (b > 63 && a != 0 && a != 1 && a != -1) return Fail("a number has more than 64 bits");
    result = 1;
    for (int64_t i = 0, count = b > 63 ? b % 2 + 62 : b; i < count; ++i)
      overflows |= __builtin_mul_overflow(result, a, &result);
  } else if (a == INT64_MIN && b == -1) {
    overflows = true;
  } else {
    int64_t rest = a % b, quotient = a / b;
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b, --quotient;
    result = sign == "//" ? quotient : rest;
  }
  return overflows ? Fail("a number has more than 64 bits") : Value::Int(result);
}

Value Evaluator::Attribute(const Value& object, const std::string& name) {
  if (object.is(Kind::kUndefined)) return Fail(absl::StrCat("'", object.text ? object.string() : "", "' is undefined"));
  bool method = (object.is(Kind::kDict) && (name == "get" || name == "items" || name == "keys" || name == "values")) ||
                (object.is(Kind::kString) && absl::StrContains(kTextMethods, absl::StrCat(" ", name, " ")));
  if (method) {
    return Value::OfCallable({.name = name, .self = object});
  }
  if (object.dict != nullptr)
    if (const Value* found = Find(object, Value::String(name))) return *found;
  return Value::Undefined(name);
}

Value Evaluator::Item(const Value& object, const Value& key) {
  if (object.is(Kind::kUndefined)) return Fail(absl::StrCat("'", object.text ? object.string() : "", "' is undefined"));
  if (object.dict != nullptr) {
    if (const Value* found = Find(object, key)) return *found;
    return Value::Undefined(ToText(key));
  }
  if (key.is_integer() && (object.is_sequence() || object.is(Kind::kString))) {
    std::vector<absl::string_view> characters;
    if (object.is(Kind::kString)) Step(object.string().size() / 16), characters = Characters(object.string());
    int64_t size = static_cast<int64_t>(object.is_sequence() ? object.list->size() : characters.size());
    int64_t i = key.integer < 0 ? key.integer + size : key.integer;
    if (i >= 0 && i < size) return object.is_sequence() ? (*object.list)[i] : Text(std::string(characters[i]));
  }
  return Value::Undefined(ToText(key));
}

Value Evaluator::Slice(const Node& node) {
  Value object = Eval(*node.parts[0]);
  int64_t bounds[3] = {0, 0, 1};
  bool given[3];
  for (int i = 0; i < 3; ++i) {
    Value bound = node.parts[i + 1] == nullptr ? Value::None() : Eval(*node.parts[i + 1]);
    given[i] = !bound.is(Kind::kNone);
    if (given[i] && !bound.is_integer()) return Value::Undefined("a slice");
    if (given[i])
      bounds[i] = std::max<int64_t>(-(int64_t{1} << 40), std::min<int64_t>(bound.integer, int64_t{1} << 40));
  }
  if (object.is(Kind::kUndefined)) return Fail("an undefined value has no slices");
  if (!object.is_sequence() && !object.is(Kind::kString)) return Value::Undefined("a slice");
  std::vector<absl::string_view> characters;
  if (object.is(Kind::kString)) Step(object.string().size() / 16), characters = Characters(object.string());
  int64_t size = static_cast<int64_t>(object.is_sequence() ? object.list->size() : characters.size()), step = bounds[2];
  if (step == 0) return Fail("the step of a slice cannot be zero");
  auto clamp = [&](int64_t i, int64_t low, int64_t high) {
    return std::max(low, std::min(i < 0 ? i + size : i, high));
  };
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  int64_t begin = given[0] ? clamp(bounds[0], low, high) : step > 0 ? low : high;
  int64_t end = given[1] ? clamp(bounds[1], low, high) : step > 0 ? high : low;
  Value::List kept;
  std::string text;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    if (object.is_sequence())
      kept.push_back((*object.list)[i]);
    else
      absl::StrAppend(&text, characters[i]);
  }
  if (object.is(Kind::kString)) return Text(std::move(text));
  Step(kept.size());
  return Value::OfList(std::move(kept), object.kind);
}

Value::List Evaluator::Iterate(const Value& value) {
  Value::List elements;
  if (value.is_sequence()) {
    elements = *value.list;
  } else if (value.is(Kind::kDict)) {
    for (const auto& item : *value.dict) elements.push_back(item.first);
  } else if (value.is(Kind::kString)) {
    Step(value.string().size());
    if (!failed())
      for (absl::string_view character : Characters(value.string()))
        elements.push_back(Value::String(std::string(character)));
  } else if (!value.is(Kind::kUndefined)) {
    Fail(absl::StrCat(KindName(value), " has no elements"));
  }
  Step(elements.size());
  return elements;
}

}  // namespace bowline::jinja
