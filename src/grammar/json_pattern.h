// Regular expressions of JSON schemas, as expressions for the strings of JSON that match them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "grammar/json_text.h"

namespace strata {

// How many characters a string may have.
struct LengthLimits {
  std::uint32_t min = 0;
  std::uint32_t max = kUnbounded;
};

// The string, with its quotes. Of ECMA-262: literals, `.`, [classes], \d \D \w \W \s \S, escapes of
// characters, (groups), (?:groups), (?<names>), alternatives, * + ? {m} {m,} {m,n}, also lazy; ^
// and $ at the ends of the alternatives of the whole. kUnsupported or kInvalidArgument, naming the
// position, for all else, and for limits of the length that are neither certain nor can be kept by
// one repetition of a single character.
Result<GrammarBuilder::Id> add_json_pattern(JsonText& json, std::string_view pattern,
                                            LengthLimits limits);

// The pattern for a `format`; empty where Strata has none.
std::string pattern_of_format(std::string_view format);

}  // namespace strata
