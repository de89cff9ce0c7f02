#ifndef BOWLINE_RUNTIME_TEXT_JINJA_EVALUATOR_H_
#define BOWLINE_RUNTIME_TEXT_JINJA_EVALUATOR_H_

// Evaluates templates, which may be hostile: each element that is made or visited costs a step. Evaluation stops at the
// first error; values are meaningless after it.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/text/jinja/limits.h"
#include "runtime/text/jinja/parser.h"
#include "runtime/text/jinja/value.h"

namespace bowline::jinja {

struct Scope {
  Scope* parent = nullptr;
  std::map<std::string, Value> names;
};

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  // The argument at a position or with a name; null if the call does not have it.
  const Value* Get(size_t position, absl::string_view name) const;
};

class Evaluator {
 public:
  Evaluator(const ChatTemplateLimits& limits, const ChatTemplateClock& clock) : limits_(limits), clock_(clock) {}
  absl::StatusOr<std::string> Run(const Node& root, const nlohmann::ordered_json& variables);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  bool failed() const { return !status_.ok(); }
  Value Fail(absl::string_view what, absl::StatusCode code = absl::StatusCode::kInvalidArgument);
  void Step(size_t count = 1);
  bool Same(const Value& left, const Value& right);
  const Value* Find(const Value& dict, const Value& key);
  Value Text(std::string text);  // a string within the limits
  std::string ToText(const Value& value);
  void Write(absl::string_view text);

  // evaluator.cc: statements.
  Flow Execute(const std::vector<std::unique_ptr<Node>>& body);
  Flow Statement(const Node& node);
  Flow For(const Node& node);
  void Assign(const Node& target, const Value& value);
  // While a Frame lives, assignments set names in a new scope.
  class Frame {
   public:
    Frame(Evaluator& evaluator, Scope* parent);
    ~Frame();

   private:
    Evaluator& evaluator_;
    Scope* outer_;
    size_t scopes_;
    int macros_;
  };
  // Counts one level of recursion, which uses the machine's stack.
  struct Level {
    explicit Level(Evaluator& evaluator) : evaluator(evaluator) {
      if (++evaluator.depth_ > kLevels)
        evaluator.Fail("the evaluation has too many levels", absl::StatusCode::kResourceExhausted);
    }
    ~Level() { --evaluator.depth_; }
    Evaluator& evaluator;
  };
  static constexpr int kLevels = 1000;
  Flow Body(const std::vector<std::unique_ptr<Node>>& body);

  // expressions.cc
  Value Eval(const Node& node);
  Value EvalNode(const Node& node);
  Value Lookup(const std::string& name);
  Value Binary(const Node& node);
  bool Holds(absl::string_view sign, const Value& left, const Value& right);
  Value Attribute(const Value& object, const std::string& name);
  Value Item(const Value& object, const Value& key);
  Value Slice(const Node& node);
  Value::List Iterate(const Value& value);
  Arguments EvalArguments(const Node& node, size_t first);

  // calls.cc
  Value Call(const Value& function, const Arguments& arguments);
  Value CallMacro(const Callable& macro, const Arguments& arguments);
  Value Method(const Value& self, const std::string& name, const Arguments& arguments);

  // filters.cc, tests.cc
  Value Filter(const std::string& name, const Value& value, const Arguments& arguments);
  bool Test(const std::string& name, const Value& value, const Arguments& arguments);

  const ChatTemplateLimits& limits_;
  const ChatTemplateClock& clock_;
  absl::Status status_;
  int line_ = 1, depth_ = 0, macros_ = 0, filters_ = 0;
  int made_macros_ = 0;
  int64_t steps_ = 0;                           // steps left
  std::vector<std::unique_ptr<Scope>> scopes_;  // scopes that macros refer to live until the end
  Scope* scope_ = nullptr;
  std::string* out_ = nullptr;
};

}  // namespace bowline::jinja

#endif  // BOWLINE_RUNTIME_TEXT_JINJA_EVALUATOR_H_
