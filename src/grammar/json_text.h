// Expressions for pieces of JSON text.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace strata {

// A number's least or largest value.
struct JsonBound {
  double value = 0;
  bool exclusive = false;
};

// White space is what models commonly write, and never endless: after { [ and , and before } and ]
// at most one space, or a line's end with at most 48 spaces or 16 tabs; after : at most one space.
class JsonText {
 public:
  using Id = GrammarBuilder::Id;

  static constexpr std::uint32_t kMostDigits = 19;    // before the point
  static constexpr std::uint32_t kMostDecimals = 17;  // behind it

  explicit JsonText(GrammarBuilder& builder) : builder_(builder) {}

  GrammarBuilder& builder() { return builder_; }

  Id space();
  Id before_answer();  // what models put between their thoughts and an answer
  Id value();          // any
  Id object();         // any
  Id array();          // any
  Id string();         // any
  Id number();         // of at most 19 digits, 17 more behind the point, and an exponent of two
  Id integer();        // of at most 19 digits
  Id boolean();
  Id null() { return builder_.literal("null"); }

  // A character of a string, escaped where it must be; of any, also where it need not be.
  Id character();
  Id character(const CharClass& characters);
  Id quoted(Id content);
  // Any string but these.
  Id string_except(std::vector<std::u32string> excluded);
  Id constant(const boost::json::value& value);
  Id member(Id key, Id value);
  Id comma();
  // What has been made for some text.
  std::map<std::string, Id>& known_patterns() { return known_patterns_; }

  // Integers from `min` to `max`, of at most 19 digits. REQUIRES: min <= max.
  Id integer_between(std::optional<std::int64_t> min, std::optional<std::int64_t> max);
  // Decimal numbers, without exponent, within exact bounds. Fails where a bound has more than 15
  // digits before or behind the point.
  Result<Id> number_between(std::optional<JsonBound> min, std::optional<JsonBound> max);

 private:
  // Makes the shared rule `name` when it is first used.
  template <typename Make>
  Id shared(std::optional<GrammarBuilder::RuleId>& rule, std::string_view name, Make make);

  GrammarBuilder& builder_;
  std::optional<GrammarBuilder::RuleId> space_, value_, object_, array_, string_, number_, integer_;
  std::optional<Id> character_;
  std::map<std::string, Id> known_patterns_;
};

}  // namespace strata
