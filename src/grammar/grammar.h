// Grammars: which texts an answer may be. Made of expressions, or read from GBNF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/automaton.h"
#include "grammar/char_class.h"

namespace strata {

// Immutable; safe to use from any thread.
using Grammar = std::shared_ptr<const Automaton>;

// Limits, so that a grammar of a stranger costs little.
struct GrammarLimits {
  static constexpr std::size_t kText = std::size_t{1} << 20;         // bytes of a GBNF text
  static constexpr std::size_t kNesting = 512;                       // of expressions
  static constexpr std::size_t kExpressions = std::size_t{1} << 19;  // with their parts
  static constexpr std::size_t kRules = 50'000;
  static constexpr std::size_t kStates = std::size_t{1} << 19;
  static constexpr std::uint32_t kRepetitions = 1'000'000'000;
};

// Builds a grammar out of expressions, which may occur in several others. What exceeds a limit
// shows in status() and compile(); from then on nothing is kept, and who adds much stops.
class GrammarBuilder {
 public:
  using Id = std::uint32_t;  // of an expression
  using RuleId = std::uint32_t;

  GrammarBuilder();

  Id empty() const { return 0; }
  Id literal(std::string_view bytes);
  Id characters(const CharClass& characters);
  Id sequence(std::vector<Id> parts);
  Id choice(std::vector<Id> alternatives);  // of none: matches nothing
  // `max` may be kUnbounded. Costs the same whatever the numbers.
  Id repeat(Id body, std::uint32_t min, std::uint32_t max);
  Id optional(Id body) { return repeat(body, 0, 1); }
  // All text that ends with the first occurrence of `end`. REQUIRES: valid UTF-8, not empty.
  // None of `without` stands before that, and the text does not start with one of `not_first`.
  Id text_through(std::string_view end, const std::vector<std::string_view>& without = {},
                  const CharClass& not_first = {});

  // A rule can be used before it is defined. `name` is for error messages.
  RuleId add_rule(std::string name);
  void define(RuleId rule, Id expression);
  Id rule(RuleId rule);
  // The rule must match some text, even where the rest of the grammar does without it.
  void require(RuleId rule) { required_.push_back(rule); }
  void rename(RuleId rule, std::string name) { rules_[rule].name = std::move(name); }
  const std::string& rule_name(RuleId rule) const { return rules_[rule].name; }
  std::size_t nesting_of(Id expression) const { return expressions_[expression].nesting; }
  const Status& status() const { return status_; }
  // Of all that has been added, in parts of expressions, which take about as much memory each.
  std::size_t size() const { return size_; }

  // Fails where `root` or a required rule matches no text at all, where a rule could begin with
  // itself, and where a limit is exceeded; the message names the rule. REQUIRES: every rule in use
  // is defined.
  Result<Grammar> compile(RuleId root);

 private:
  friend class GrammarCompiler;
  friend class Lowering;

  enum class Kind : std::uint8_t { kLiteral, kCharacters, kSequence, kChoice, kRepeat, kRule };
  struct Expression {
    Kind kind = Kind::kLiteral;
    std::uint32_t first = 0;  // of bytes_, classes_ or parts_; for kRule the rule
    std::uint32_t count = 0;  // of bytes or parts
    std::uint32_t min = 0;    // kRepeat
    std::uint32_t max = 0;
    std::uint32_t nesting = 0;
  };
  struct Rule {
    std::string name;
    Id expression = 0;
  };

  // Whether there is room for so many more.
  bool take(std::size_t parts);
  Id add(Expression expression, const std::vector<Id>& parts);
  class TextThrough;

  std::vector<Expression> expressions_;
  std::vector<Id> parts_;
  std::string bytes_;
  std::vector<CharClass> classes_;
  std::vector<Rule> rules_;
  std::vector<RuleId> required_;
  std::size_t size_ = 0;
  Status status_;
};

// Reads GBNF, as llama.cpp has it: rules `name ::= ...`, of which `root` is the whole answer;
// "literals" and [character classes], also negated, with the escapes \n \r \t \\ \" \[ \] \xHH
// \uHHHH \UHHHHHHHH, which name characters; `.`; alternatives, groups, * + ? {m} {m,} {m,n};
// comments from #. A rule ends with its line, unless in a group, after ::= or |, or before |.
// kInvalidArgument with line and column where the text is wrong.
Result<Grammar> parse_gbnf(std::string_view text);

}  // namespace strata
