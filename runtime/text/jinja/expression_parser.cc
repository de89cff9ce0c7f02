#include <algorithm>

#include "absl/strings/numbers.h"
#include "runtime/text/jinja/parser_state.h"

namespace bowline::jinja {

Parser::NodePtr Parser::TupleOr(bool choice) {
  NodePtr first = choice ? Expression() : Or();
  if (!IsOperator(",")) return first;
  NodePtr tuple = Make(NodeKind::kTuple);
  tuple->parts.push_back(std::move(first));
  while (status_.ok() && TakeOperator(",")) {
    if (IsKind(TokenKind::kBlockEnd) || IsKind(TokenKind::kPrintEnd) || IsOperator(")")) break;
    tuple->parts.push_back(choice ? Expression() : Or());
  }
  return tuple;
}

Parser::NodePtr Parser::Expression() {
  Depth depth(*this);
  NodePtr node = Or();
  while (status_.ok() && TakeName("if")) {
    NodePtr choice = Make(NodeKind::kChoice);
    choice->parts.push_back(Or());
    choice->parts.push_back(std::move(node));
    choice->parts.push_back(TakeName("else") ? Expression() : nullptr);
    node = std::move(choice);
  }
  return node;
}

Parser::NodePtr Parser::Join(NodeKind kind, std::string text, NodePtr left, NodePtr right) {
  NodePtr node = Make(kind, std::move(text));
  node->parts.push_back(std::move(left));
  node->parts.push_back(std::move(right));
  if (++chain_ > 4096) Fail("the template has more than 4096 operators, filters and calls");
  return node;
}

Parser::NodePtr Parser::Or() {
  NodePtr node = And();
  while (TakeName("or")) node = Join(NodeKind::kOr, "or", std::move(node), And());
  return node;
}

Parser::NodePtr Parser::And() {
  NodePtr node = Not();
  while (TakeName("and")) node = Join(NodeKind::kAnd, "and", std::move(node), Not());
  return node;
}

Parser::NodePtr Parser::Not() {
  if (!TakeName("not")) return Comparison();
  Depth depth(*this);
  NodePtr node = Make(NodeKind::kUnary, "not");
  node->parts.push_back(Not());
  return node;
}

Parser::NodePtr Parser::Comparison() {
  NodePtr first = Binary(0);
  NodePtr node = Make(NodeKind::kCompare);
  while (status_.ok()) {
    std::string name = now().text;
    const bool compares = IsKind(TokenKind::kOperator) &&
                          (name == "==" || name == "!=" || name == "<" || name == "<=" || name == ">" || name == ">=");
    if (compares || IsName("in")) {
      Next();
    } else if (IsName("not") && tokens_[at_ + 1].kind == TokenKind::kName && tokens_[at_ + 1].text == "in") {
      Next();
      Next();
      name = "not in";
    } else {
      break;
    }
    node->operators.push_back(std::move(name));
    node->parts.push_back(Binary(0));
  }
  if (node->parts.empty()) return first;
  node->parts.insert(node->parts.begin(), std::move(first));
  return node;
}

Parser::NodePtr Parser::Binary(int level) {
  static const std::vector<std::vector<absl::string_view>> kLevels = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
  if (level == 4) return Unary(true);
  NodePtr node = Binary(level + 1);
  while (status_.ok() && IsKind(TokenKind::kOperator) &&
         std::find(kLevels[level].begin(), kLevels[level].end(), now().text) != kLevels[level].end()) {
    std::string name = now().text;
    Next();
    NodePtr right = Binary(level + 1);
    node = Join(NodeKind::kBinary, std::move(name), std::move(node), std::move(right));
  }
  return node;
}

Parser::NodePtr Parser::Unary(bool filters) {
  Depth depth(*this);
  NodePtr node;
  if (IsOperator("-") || IsOperator("+")) {
    node = Make(NodeKind::kUnary, now().text);
    Next();
    node->parts.push_back(Unary(false));
  } else {
    node = Primary();
  }
  node = Postfix(std::move(node));
  return filters ? Filters(std::move(node)) : std::move(node);
}

Parser::NodePtr Parser::Primary() {
  const Token token = now();
  Next();
  if (token.kind == TokenKind::kString) {
    std::string text = token.text;
    while (IsKind(TokenKind::kString)) text += now().text, Next();
    return Constant(Value::String(std::move(text)));
  }
  if (token.kind == TokenKind::kInteger) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(token.text, &number)) Fail(absl::StrCat("the number ", token.text, " has more than 64 bits"));
    return Constant(Value::Int(number));
  }
  if (token.kind == TokenKind::kFloat) {
    double number = 0;
    if (!absl::SimpleAtod(token.text, &number)) Fail(absl::StrCat("the number ", token.text, " is none"));
    return Constant(Value::Float(number));
  }
  if (token.kind == TokenKind::kName) {
    if (token.text == "true" || token.text == "True") return Constant(Value::Bool(true));
    if (token.text == "false" || token.text == "False") return Constant(Value::Bool(false));
    if (token.text == "none" || token.text == "None") return Constant(Value::None());
    return Make(NodeKind::kName, token.text);
  }
  if (token.kind == TokenKind::kOperator && token.text == "(") {
    if (TakeOperator(")")) return Make(NodeKind::kTuple);
    NodePtr node = TupleOr();
    Expect(")");
    return node;
  }
  if (token.kind == TokenKind::kOperator && (token.text == "[" || token.text == "{")) {
    bool dict = token.text == "{";
    absl::string_view end = dict ? "}" : "]";
    NodePtr node = Make(dict ? NodeKind::kDict : NodeKind::kList);
    while (status_.ok() && !IsOperator(end)) {
      node->parts.push_back(Expression());
      if (dict) Expect(":"), node->parts.push_back(Expression());
      if (!IsOperator(end)) Expect(",");
    }
    Expect(end);
    return node;
  }
  if (status_.ok()) --at_;
  Fail(absl::StrCat("'", token.text, "' begins no expression"));
  return Make(NodeKind::kConstant);
}

void Parser::Arguments(Node& node) {
  Expect("(");
  while (status_.ok() && !IsOperator(")")) {
    if (IsKind(TokenKind::kName) && tokens_[at_ + 1].kind == TokenKind::kOperator && tokens_[at_ + 1].text == "=") {
      std::string name = TakeAnyName();
      Next();
      node.named.emplace_back(std::move(name), Expression());
    } else {
      if (!node.named.empty()) Fail("an argument without a name follows one with a name");
      node.parts.push_back(Expression());
    }
    if (!IsOperator(")")) Expect(",");
  }
  Expect(")");
}

Parser::NodePtr Parser::Postfix(NodePtr node) {
  while (status_.ok()) {
    if (TakeOperator(".")) {
      NodePtr attribute = Join(NodeKind::kAttribute, "", std::move(node), nullptr);
      attribute->text = TakeAnyName();
      node = std::move(attribute);
    } else if (TakeOperator("[")) {
      NodePtr item = Join(NodeKind::kItem, "", std::move(node), nullptr);
      item->parts.pop_back();
      bool slice = false;
      for (int part = 0; part < 3 && status_.ok(); ++part) {
        bool left_out = IsOperator(":") || IsOperator("]");
        item->parts.push_back(left_out ? nullptr : TupleOr());
        if (!TakeOperator(":")) break;
        slice = true;
      }
      Expect("]");
      if (!slice && item->parts.back() == nullptr) Fail("[] names no element");
      if (slice) item->kind = NodeKind::kSlice, item->parts.resize(4);
      node = std::move(item);
    } else if (IsOperator("(")) {
      node = Join(NodeKind::kCall, "", std::move(node), nullptr);
      node->parts.pop_back();
      Arguments(*node);
    } else {
      break;
    }
  }
  return node;
}

Parser::NodePtr Parser::Filters(NodePtr node) {
  while (status_.ok()) {
    bool test = IsName("is");
    if (!test && !IsOperator("|")) {
      if (!IsOperator("(")) break;
      node = Postfix(std::move(node));
      continue;
    }
    Next();
    bool negated = test && TakeName("not");
    node = Join(test ? NodeKind::kTest : NodeKind::kFilter, "", std::move(node), nullptr);
    node->parts.pop_back();
    node->text = TakeAnyName();
    TokenKind kind = now().kind;
    if (IsOperator("(")) {
      Arguments(*node);
    } else if (test && (kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
                        IsOperator("[") || IsOperator("{") ||
                        (kind == TokenKind::kName && !IsName("else") && !IsName("or") && !IsName("and") &&
                         !IsName("is") && !IsName("if") && !IsName("in") && !IsName("not")))) {
      node->parts.push_back(Postfix(Primary()));
    }
    if (negated) {
      NodePtr inverse = Make(NodeKind::kUnary, "not");
      inverse->parts.push_back(std::move(node));
      node = std::move(inverse);
    }
  }
  return node;
}

}  // namespace bowline::jinja
