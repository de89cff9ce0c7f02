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
  steps_ -= static_cast<int64_t>(count);
  if (steps_ < 0)
    Fail(absl::StrCat("evaluation takes more than ", limits_.steps, " steps"), absl::StatusCode::kResourceExhausted);
}

bool Evaluator::Same(const Value& left, const Value& right) {
  bool same = Equal(left, right, steps_);
  Step(0);
  return same && !failed();
}

const Value* Evaluator::Find(const Value& dict, const Value& key) {
  const Value* found = dict.Find(key, steps_);
  Step(0);
  return found;
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

Evaluator::Frame::Frame(Evaluator& evaluator, Scope* parent)
    : evaluator_(evaluator),
      outer_(evaluator.scope_),
      scopes_(evaluator.scopes_.size()),
      macros_(evaluator.made_macros_) {
  evaluator.scopes_.push_back(std::make_unique<Scope>());
  evaluator.scope_ = evaluator.scopes_.back().get();
  evaluator.scope_->parent = parent;
}

Evaluator::Frame::~Frame() {
  evaluator_.scope_ = outer_;
  if (evaluator_.made_macros_ == macros_) evaluator_.scopes_.resize(scopes_);
}

Evaluator::Flow Evaluator::Body(const std::vector<std::unique_ptr<Node>>& body) {
  Frame frame(*this, scope_);
  return Execute(body);
}

absl::StatusOr<std::string> Evaluator::Run(const Node& root, const nlohmann::ordered_json& variables) {
  if (!variables.is_object()) return absl::InvalidArgumentError("line 1: the variables are no JSON object");
  steps_ = limits_.steps;
  Frame frame(*this, nullptr);
  for (const auto& [name, json] : variables.items()) {
    absl::StatusOr<Value> value = Value::OfJson(json, limits_.nesting);
    if (!value.ok())
      return absl::Status(value.status().code(),
                          absl::StrCat("line 1: the variable '", name, "' holds ", value.status().message()));
    scope_->names[name] = *std::move(value);
  }
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
  Level level(*this);
  if (failed()) return Flow::kNext;
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
      Flow flow = Body(node.body);
      out_ = out;
      if (!failed()) Assign(*node.parts[0], Value::String(std::move(text)));
      return flow;
    }
    case NodeKind::kMacro: {
      Step(64);  // it keeps its scopes
      ++made_macros_;
      scope_->names[node.text] = Value::OfCallable({.name = node.text, .macro = &node, .scope = scope_});
      break;
    }
    case NodeKind::kGeneration:
      return Body(node.body);
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
    if (value.holds_namespace) {  // namespaces that hold each other would never be freed
      Fail("a namespace, or a value that holds one, cannot be put into a namespace here");
      return;
    }
    object.Put(Value::String(target.text), value, steps_);
    Step(0);
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
  if (node.parts[2] != nullptr) {
    Value::List kept;
    for (Value& element : elements) {
      if (failed()) break;
      Frame frame(*this, scope_);
      Assign(*node.parts[0], element);
      if (!failed() && IsTrue(Eval(*node.parts[2]))) kept.push_back(std::move(element));
    }
    elements = std::move(kept);
  }
  if (failed()) return Flow::kNext;
  int64_t size = static_cast<int64_t>(elements.size());
  for (int64_t i = 0; i < size && !failed(); ++i) {
    Step();
    Frame frame(*this, scope_);
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
  return size == 0 ? Execute(node.otherwise) : Flow::kNext;
}

}  // namespace bowline::jinja
