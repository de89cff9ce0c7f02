#include "runtime/text/jinja/evaluator.h"

#include "absl/strings/str_cat.h"

namespace bowline::jinja {

const Value* Arguments::Get(size_t position, absl::string_view name) const {
  if (position < values.size()) return &values[position];
  for (const auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}

Value Evaluator::Fail(absl::string_view what, absl::StatusCode code) {
  if (status_.ok()) status_ = absl::Status(code, absl::StrCat("line ", line_, ": ", what));
  return Value();
}

void Evaluator::Step(size_t count) {
  steps_ += static_cast<int64_t>(count);
  if (steps_ > limits_.steps)
    Fail(absl::StrCat("evaluation takes more than ", limits_.steps, " steps"), absl::StatusCode::kResourceExhausted);
}

Value Evaluator::Text(std::string text) {
  Step(text.size() / 64);
  if (text.size() > limits_.text_bytes)
    return Fail(absl::StrCat("a text has more than ", limits_.text_bytes, " bytes"),
                absl::StatusCode::kResourceExhausted);
  return Value::String(std::move(text));
}

std::string Evaluator::ToText(const Value& value) {
  std::string text = Str(value, limits_.text_bytes);
  Step(text.size() / 64);
  return text;
}

void Evaluator::Write(absl::string_view text) {
  Step(text.size() / 64);
  if (out_->size() + text.size() > limits_.text_bytes) {
    Fail(absl::StrCat("the output has more than ", limits_.text_bytes, " bytes"), absl::StatusCode::kResourceExhausted);
    return;
  }
  absl::StrAppend(out_, text);
}

Scope* Evaluator::NewScope(Scope* parent) {
  scopes_.push_back(std::make_unique<Scope>());
  scopes_.back()->parent = parent;
  return scopes_.back().get();
}

absl::StatusOr<std::string> Evaluator::Run(const Node& root, const nlohmann::ordered_json& variables) {
  if (!variables.is_object()) return absl::InvalidArgumentError("line 1: the variables are no JSON object");
  scope_ = NewScope(nullptr);
  for (const auto& [name, value] : variables.items()) scope_->names[name] = Value::OfJson(value);
  std::string out;
  out_ = &out;
  Execute(root.body);
  if (failed()) return status_;
  return out;
}

Evaluator::Flow Evaluator::Execute(const std::vector<std::unique_ptr<Node>>& body) {
  for (const auto& node : body) {
    if (failed()) break;
    if (Flow flow = Statement(*node); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::Statement(const Node& node) {
  Step();
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::kData:
      Write(node.text);
      break;
    case NodeKind::kPrint: {
      std::string text = ToText(Eval(*node.parts[0]));
      if (!failed()) Write(text);
      break;
    }
    case NodeKind::kIf:
      return Execute(IsTrue(Eval(*node.parts[0])) ? node.body : node.otherwise);
    case NodeKind::kFor:
      return For(node);
    case NodeKind::kSet: {
      Value value = Eval(*node.parts[1]);
      if (!failed()) Assign(*node.parts[0], value);
      break;
    }
    case NodeKind::kSetBlock: {
      if (node.parts[1] != nullptr) {
        Fail("a set block with a filter is not known here; apply the filter to the name");
        break;
      }
      std::string text;
      std::string* out = std::exchange(out_, &text);
      Scope* scope = std::exchange(scope_, NewScope(scope_));
      Flow flow = Execute(node.body);
      scope_ = scope;
      out_ = out;
      if (!failed()) Assign(*node.parts[0], Value::String(std::move(text)));
      return flow;
    }
    case NodeKind::kMacro: {
      auto macro = std::make_shared<Callable>();
      macro->name = node.text;
      macro->macro = &node;
      macro->scope = scope_;
      Value value;
      value.kind = Kind::kCallable;
      value.callable = std::move(macro);
      scope_->names[node.text] = std::move(value);
      break;
    }
    case NodeKind::kGeneration: {
      Scope* scope = std::exchange(scope_, NewScope(scope_));
      Flow flow = Execute(node.body);
      scope_ = scope;
      return flow;
    }
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      Fail("an expression stands where a statement is expected");
  }
  return Flow::kNext;
}

void Evaluator::Assign(const Node& target, const Value& value) {
  if (target.kind == NodeKind::kName) {
    scope_->names[target.text] = value;
  } else if (target.kind == NodeKind::kAttribute) {
    Value object = Lookup(target.parts[0]->text);
    if (!object.is(Kind::kNamespace)) {
      Fail("only attributes of a namespace can be set");
      return;
    }
    if (value.is(Kind::kNamespace)) {  // namespaces that hold each other would never be freed
      Fail("a namespace cannot be put into a namespace here");
      return;
    }
    Value key = Value::String(target.text);
    Step(object.dict->size() / 16);
    for (auto& [name, old] : *object.dict)
      if (Equal(name, key)) {
        old = value;
        return;
      }
    object.dict->emplace_back(std::move(key), value);
  } else {
    Value::List elements = Iterate(value);
    if (failed()) return;
    if (elements.size() != target.parts.size()) {
      Fail(absl::StrCat(elements.size(), " values cannot be unpacked to ", target.parts.size(), " names"));
      return;
    }
    for (size_t i = 0; i < elements.size(); ++i) Assign(*target.parts[i], elements[i]);
  }
}

Evaluator::Flow Evaluator::For(const Node& node) {
  Value::List elements = Iterate(Eval(*node.parts[1]));
  Scope* outer = scope_;
  if (node.parts[2] != nullptr) {
    Value::List kept;
    for (Value& element : elements) {
      if (failed()) break;
      scope_ = NewScope(outer);
      Assign(*node.parts[0], element);
      if (!failed() && IsTrue(Eval(*node.parts[2]))) kept.push_back(std::move(element));
    }
    scope_ = outer;
    elements = std::move(kept);
  }
  if (failed()) return Flow::kNext;
  int64_t size = static_cast<int64_t>(elements.size());
  for (int64_t i = 0; i < size && !failed(); ++i) {
    Step();
    scope_ = NewScope(outer);
    Value::Dict loop;
    auto add = [&](const char* name, Value value) { loop.emplace_back(Value::String(name), std::move(value)); };
    add("index", Value::Int(i + 1));
    add("index0", Value::Int(i));
    add("revindex", Value::Int(size - i));
    add("revindex0", Value::Int(size - i - 1));
    add("first", Value::Bool(i == 0));
    add("last", Value::Bool(i + 1 == size));
    add("length", Value::Int(size));
    add("previtem", i > 0 ? elements[i - 1] : Value::Undefined("loop.previtem"));
    add("nextitem", i + 1 < size ? elements[i + 1] : Value::Undefined("loop.nextitem"));
    scope_->names["loop"] = Value::OfDict(std::move(loop));
    Assign(*node.parts[0], elements[i]);
    Flow flow = Execute(node.body);
    if (flow == Flow::kBreak) break;
  }
  scope_ = outer;
  return size == 0 ? Execute(node.otherwise) : Flow::kNext;
}

}  // namespace bowline::jinja
