#include "runtime/text/jinja/parser_state.h"

namespace bowline::jinja {

Parser::Body Parser::Statements(std::vector<absl::string_view> ends) {
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
      node->parts.push_back(TupleOr());
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

void Parser::BlockEnd() { ExpectKind(TokenKind::kBlockEnd, "%}"); }

Parser::Body Parser::BodyUntil(absl::string_view end) {
  BlockEnd();
  Body body = Statements({end});
  TakeName(end);
  BlockEnd();
  return body;
}

Parser::NodePtr Parser::Statement() {
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

Parser::NodePtr Parser::If() {
  Depth depth(*this);
  NodePtr node = Make(NodeKind::kIf);
  node->parts.push_back(TupleOr());
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

Parser::NodePtr Parser::For() {
  NodePtr node = Make(NodeKind::kFor);
  node->parts.push_back(Target());
  if (!TakeName("in")) Fail("'in' is expected in a for");
  node->parts.push_back(TupleOr(false));
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

Parser::NodePtr Parser::Target() {
  Depth depth(*this);
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

Parser::NodePtr Parser::Set() {
  NodePtr node = Make(NodeKind::kSet);
  node->parts.push_back(Target());
  if (TakeOperator("=")) {
    node->parts.push_back(TupleOr());
    BlockEnd();
    return node;
  }
  node->kind = NodeKind::kSetBlock;
  node->parts.push_back(IsOperator("|") ? Filters(nullptr) : nullptr);
  node->body = BodyUntil("endset");
  return node;
}

Parser::NodePtr Parser::Macro() {
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

absl::StatusOr<std::unique_ptr<Node>> ParseTemplate(absl::string_view source, const ParserLimits& limits) {
  auto tokens = Tokenize(source);
  if (!tokens.ok()) return tokens.status();
  Parser parser(*std::move(tokens), limits);
  std::unique_ptr<Node> root = parser.Run();
  if (!parser.status().ok()) return parser.status();
  return root;
}

}  // namespace bowline::jinja
