#include "runtime/text/jinja/parser.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/text/jinja/lexer.h"

namespace bowline::jinja {
namespace {

using NodePtr = std::unique_ptr<Node>;
using Body = std::vector<NodePtr>;

// Stops at the first error, which status() tells; what is parsed after it means nothing.
class Parser {
 public:
  Parser(std::vector<Token> tokens, const ParserLimits& limits) : tokens_(std::move(tokens)), limits_(limits) {}

  NodePtr Run() {
    NodePtr root = Make(NodeKind::kData);
    root->body = Statements({});
    return root;
  }
  const absl::Status& status() const { return status_; }

 private:
  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > parser.limits_.depth)
        parser.Fail(absl::StrCat("blocks and expressions are nested deeper than ", parser.limits_.depth));
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  const Token& now() const { return tokens_[at_]; }
  void Next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  void Fail(absl::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("line ", now().line, ": ", what));
    at_ = tokens_.size() - 1;
  }
  bool IsKind(TokenKind kind) const { return now().kind == kind; }
  bool IsOperator(absl::string_view text) const { return IsKind(TokenKind::kOperator) && now().text == text; }
  bool IsName(absl::string_view text) const { return IsKind(TokenKind::kName) && now().text == text; }
  bool TakeOperator(absl::string_view text) { return IsOperator(text) ? Next(), true : false; }
  bool TakeName(absl::string_view text) { return IsName(text) ? Next(), true : false; }
  void Expect(absl::string_view text) {
    if (!TakeOperator(text)) Fail(absl::StrCat("'", text, "' is expected before '", now().text, "'"));
  }
  void ExpectKind(TokenKind kind, absl::string_view text) {
    if (IsKind(kind))
      Next();
    else
      Fail(absl::StrCat("'", text, "' is expected before '", now().text, "'"));
  }
  std::string TakeAnyName() {
    std::string name = now().text;
    if (!IsKind(TokenKind::kName)) Fail(absl::StrCat("a name is expected before '", name, "'"));
    Next();
    return name;
  }
  NodePtr Make(NodeKind kind, std::string text = "") {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->line = now().line;
    node->text = std::move(text);
    return node;
  }
  NodePtr Constant(Value value) {
    NodePtr node = Make(NodeKind::kConstant);
    node->value = std::move(value);
    return node;
  }

  // Up to a block that begins with one of `ends`, whose name is then the current token.
  Body Statements(std::vector<absl::string_view> ends) {
    Depth depth(*this);
    Body body;
    while (status_.ok()) {
      if (IsKind(TokenKind::kEnd)) {
        if (!ends.empty()) Fail(absl::StrCat("a block has no end; write {% ", ends.back(), " %}"));
        break;
      }
      if (IsKind(TokenKind::kData)) {
        body.push_back(Make(NodeKind::kData, now().text));
        Next();
      } else if (IsKind(TokenKind::kPrintBegin)) {
        Next();
        NodePtr node = Make(NodeKind::kPrint);
        node->parts.push_back(TupleOr(true));
        ExpectKind(TokenKind::kPrintEnd, "}}");
        body.push_back(std::move(node));
      } else {
        ExpectKind(TokenKind::kBlockBegin, "{%");
        for (absl::string_view end : ends)
          if (IsName(end)) return body;
        body.push_back(Statement());
      }
    }
    return body;
  }

  void BlockEnd() { ExpectKind(TokenKind::kBlockEnd, "%}"); }
  Body BodyUntil(absl::string_view end) {
    BlockEnd();
    Body body = Statements({end});
    TakeName(end);
    BlockEnd();
    return body;
  }

  NodePtr Statement() {
    if (TakeName("if")) return If();
    if (TakeName("for")) return For();
    if (TakeName("set")) return Set();
    if (TakeName("macro")) return Macro();
    if (TakeName("generation")) {
      NodePtr node = Make(NodeKind::kGeneration);
      node->body = BodyUntil("endgeneration");
      return node;
    }
    bool leaves = IsName("break");
    if (leaves || IsName("continue")) {
      if (loops_ == 0) Fail(absl::StrCat("'", now().text, "' stands outside of a loop"));
      NodePtr node = Make(leaves ? NodeKind::kBreak : NodeKind::kContinue);
      Next();
      BlockEnd();
      return node;
    }
    Fail(absl::StrCat("the tag '", now().text,
                      "' is not known; known: if, for, set, macro, generation, break, continue, raw"));
    return Make(NodeKind::kData);
  }

  NodePtr If() {
    Depth depth(*this);
    NodePtr node = Make(NodeKind::kIf);
    node->parts.push_back(TupleOr(false));
    BlockEnd();
    node->body = Statements({"elif", "else", "endif"});
    if (TakeName("elif")) {
      node->otherwise.push_back(If());
      return node;
    }
    if (TakeName("else")) {
      BlockEnd();
      node->otherwise = Statements({"endif"});
    }
    TakeName("endif");
    BlockEnd();
    return node;
  }

  NodePtr For() {
    NodePtr node = Make(NodeKind::kFor);
    node->parts.push_back(Target());
    if (!TakeName("in")) Fail("'in' is expected in a for");
    node->parts.push_back(TupleOr(false, false));
    node->parts.push_back(TakeName("if") ? Expression() : nullptr);
    if (IsName("recursive")) Fail("recursive loops are not known here; write the loops out");
    BlockEnd();
    ++loops_;
    node->body = Statements({"else", "endfor"});
    --loops_;
    if (TakeName("else")) {
      BlockEnd();
      node->otherwise = Statements({"endfor"});
    }
    TakeName("endfor");
    BlockEnd();
    return node;
  }

  // A name, an attribute of a namespace, or names that elements are unpacked to.
  NodePtr Target() {
    NodePtr tuple = Make(NodeKind::kTuple);
    bool comma = false;
    do {
      if (comma && !IsKind(TokenKind::kName) && !IsOperator("(")) break;
      if (TakeOperator("(")) {
        tuple->parts.push_back(Target());
        Expect(")");
      } else {
        NodePtr name = Make(NodeKind::kName, TakeAnyName());
        if (TakeOperator(".")) {
          NodePtr attribute = Make(NodeKind::kAttribute, TakeAnyName());
          attribute->parts.push_back(std::move(name));
          name = std::move(attribute);
        }
        tuple->parts.push_back(std::move(name));
      }
    } while (status_.ok() && TakeOperator(",") && (comma = true));
    return tuple->parts.size() == 1 && !comma ? std::move(tuple->parts[0]) : std::move(tuple);
  }

  NodePtr Set() {
    NodePtr node = Make(NodeKind::kSet);
    node->parts.push_back(Target());
    if (TakeOperator("=")) {
      node->parts.push_back(TupleOr(true));
      BlockEnd();
      return node;
    }
    node->kind = NodeKind::kSetBlock;
    node->parts.push_back(IsOperator("|") ? Filters(nullptr) : nullptr);
    node->body = BodyUntil("endset");
    return node;
  }

  NodePtr Macro() {
    NodePtr node = Make(NodeKind::kMacro, TakeAnyName());
    Expect("(");
    while (status_.ok() && !IsOperator(")")) {
      std::string name = TakeAnyName();
      node->named.emplace_back(std::move(name), TakeOperator("=") ? Expression() : nullptr);
      if (!IsOperator(")")) Expect(",");
    }
    Expect(")");
    int loops = std::exchange(loops_, 0);
    node->body = BodyUntil("endmacro");
    loops_ = loops;
    return node;
  }

  // An expression, or a tuple without parentheses.
  NodePtr TupleOr(bool, bool choice = true) {
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

  NodePtr Expression() {
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

  NodePtr Join(NodeKind kind, std::string text, NodePtr left, NodePtr right) {
    NodePtr node = Make(kind, std::move(text));
    node->parts.push_back(std::move(left));
    node->parts.push_back(std::move(right));
    if (++chain_ > 4096) Fail("the template has more than 4096 operators, filters and calls");
    return node;
  }
  NodePtr Or() {
    NodePtr node = And();
    while (TakeName("or")) node = Join(NodeKind::kOr, "or", std::move(node), And());
    return node;
  }
  NodePtr And() {
    NodePtr node = Not();
    while (TakeName("and")) node = Join(NodeKind::kAnd, "and", std::move(node), Not());
    return node;
  }
  NodePtr Not() {
    if (!TakeName("not")) return Comparison();
    Depth depth(*this);
    NodePtr node = Make(NodeKind::kUnary, "not");
    node->parts.push_back(Not());
    return node;
  }

  NodePtr Comparison() {
    NodePtr first = Binary(0);
    NodePtr node = Make(NodeKind::kCompare);
    while (status_.ok()) {
      std::string name = now().text;
      if (IsKind(TokenKind::kOperator) &&
          (name == "==" || name == "!=" || name == "<" || name == "<=" || name == ">" || name == ">=")) {
        Next();
      } else if (IsName("in")) {
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

  NodePtr Binary(int level) {
    static const std::vector<std::vector<absl::string_view>> kLevels = {
        {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
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

  NodePtr Unary(bool filters) {
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

  NodePtr Primary() {
    const Token token = now();
    Next();
    if (token.kind == TokenKind::kString) {
      std::string text = token.text;
      while (IsKind(TokenKind::kString)) text += now().text, Next();
      return Constant(Value::String(std::move(text)));
    }
    if (token.kind == TokenKind::kInteger) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(token.text, &number))
        Fail(absl::StrCat("the number ", token.text, " has more than 64 bits"));
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
      NodePtr node = TupleOr(true);
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

  void Arguments(Node& node) {
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

  NodePtr Postfix(NodePtr node) {
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
          item->parts.push_back(left_out ? nullptr : TupleOr(true));
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

  NodePtr Filters(NodePtr node) {
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

  std::vector<Token> tokens_;
  ParserLimits limits_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0, chain_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> ParseTemplate(absl::string_view source, const ParserLimits& limits) {
  auto tokens = Tokenize(source);
  if (!tokens.ok()) return tokens.status();
  Parser parser(*std::move(tokens), limits);
  NodePtr root = parser.Run();
  if (!parser.status().ok()) return parser.status();
  return root;
}

}  // namespace bowline::jinja
