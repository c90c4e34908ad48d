// JSON schemas, where the input starts with a brace, or else GBNF; then a walk through the grammar,
// on which the masks must allow what the matcher takes.
#include <boost/json.hpp>
#include <cstdint>

#include "grammar/grammar_constraint.h"
#include "grammar/json_schema.h"

namespace {

using namespace strata;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// All bytes, and some tokens that end what they do not begin.
const std::shared_ptr<const TokenTable>& table() {
  static const std::shared_ptr<const TokenTable> made = [] {
    std::vector<std::string> tokens;
    tokens.reserve(300);
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* text : {"\", \"", "\"}", "\": ", "},{", "ab", "ba", "12", "\n  ", "<end>"})
      tokens.emplace_back(text);
    const auto end = static_cast<TokenId>(tokens.size() - 1);
    return std::make_shared<const TokenTable>(std::move(tokens), std::vector{end},
                                              std::vector<TokenId>{});
  }();
  return made;
}

Result<Grammar> read(std::string_view input) {
  if (!input.starts_with('{')) return parse_gbnf(input);
  boost::json::parse_options options;
  options.max_depth = 128;
  boost::system::error_code error;
  const auto schema = boost::json::parse({input.data(), input.size()}, error, {}, options);
  if (error) return invalid_argument("no JSON");
  return json_schema_grammar(schema);
}

bool allows(std::span<const std::uint64_t> mask, TokenId token) {
  return (mask[static_cast<std::size_t>(token) / 64] >> (token % 64) & 1) != 0;
}

void walk(const Grammar& grammar, std::string_view choices) {
  GrammarConstraint constraint(std::make_shared<TokenMasks>(grammar, table()));
  for (const char choice : choices.substr(0, 16)) {
    const auto allowed = constraint.allowed();
    // Beyond that a token may be more than can be followed.
    if (!allowed.ok() || constraint.matcher().configuration().threads.size() > 100) return;
    const auto mask = *allowed;
    const auto first = static_cast<TokenId>(static_cast<std::uint8_t>(choice));
    TokenId chosen = -1;
    for (TokenId i = 0; table()->contains(i); ++i) {
      const auto token = static_cast<TokenId>((i + first) % static_cast<TokenId>(table()->size()));
      if (table()->is_end(token)) {
        require(allows(mask, token) == constraint.matcher().done());
        continue;
      }
      if (chosen < 0 && allows(mask, token)) chosen = token;
      GrammarMatcher copy = constraint.matcher();
      if (i >= 4 && token < 256) continue;
      const bool read = copy.read(table()->bytes(token));
      require(read == allows(mask, token) || copy.too_ambiguous());
    }
    if (chosen < 0) return;
    constraint.advance(chosen);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (size > 4096) return 0;
  const auto grammar = read(input);
  if (grammar.ok()) walk(*grammar, input);
  return 0;
}
