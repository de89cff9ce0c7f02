#ifndef BOWLINE_RUNTIME_TEXT_JINJA_PARSER_STATE_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_PARSER_STATE_H_

// The parser of templates: statement_parser.cc and expression_parser.cc.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/text/jinja/lexer.h"
#include "runtime/text/jinja/parser.h"

namespace bowline::jinja {

// Stops at the first error, which status() returns; later results are meaningless.
class Parser {
 public:
  using NodePtr = std::unique_ptr<Node>;
  using Body = std::vector<NodePtr>;

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

  // statement_parser.cc
  // Parses statements up to a block that begins with one of `ends`; that name is then the current token.
  Body Statements(std::vector<absl::string_view> ends);
  void BlockEnd();
  Body BodyUntil(absl::string_view end);
  NodePtr Statement();
  NodePtr If();
  NodePtr For();
  // A name, an attribute of a namespace, or names that elements are unpacked to.
  NodePtr Target();
  NodePtr Set();
  NodePtr Macro();

  // expression_parser.cc
  // An expression, or a tuple without parentheses.
  NodePtr TupleOr(bool choice = true);
  NodePtr Expression();
  NodePtr Join(NodeKind kind, std::string text, NodePtr left, NodePtr right);
  NodePtr Or();
  NodePtr And();
  NodePtr Not();
  NodePtr Comparison();
  NodePtr Binary(int level);
  NodePtr Unary(bool filters);
  NodePtr Primary();
  void Arguments(Node& node);
  NodePtr Postfix(NodePtr node);
  NodePtr Filters(NodePtr node);

  std::vector<Token> tokens_;
  ParserLimits limits_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0, chain_ = 0;
  absl::Status status_;
};

}  // namespace bowline::jinja

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_PARSER_STATE_H_
