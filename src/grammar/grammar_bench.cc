// What keeping to a grammar costs per token, with a vocabulary of 152,000 tokens.
#include <benchmark/benchmark.h>

#include <boost/json.hpp>
#include <chrono>
#include <random>
#include <set>

#include "base/utf8.h"
#include "grammar/grammar_constraint.h"
#include "grammar/json_schema.h"

namespace strata {
namespace {

constexpr std::size_t kVocabulary = 152'000;

// Like a byte-pair vocabulary: bytes, words with and without a blank, characters of other scripts,
// numbers, indentation, and punctuation in many combinations.
std::shared_ptr<const TokenTable> make_table() {
  std::mt19937 random(1);
  std::set<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace(1, static_cast<char>(byte));
  for (int i = 0; i < 1000; ++i) tokens.insert(std::to_string(i));
  for (std::size_t n = 1; n <= 64; ++n) {
    tokens.insert(std::string(n, ' '));
    tokens.insert("\n" + std::string(n, ' '));
  }
  constexpr std::string_view kMarks = "\"\"\"{}[]:,,.;()<>=-+*/\\'_ \n";
  while (tokens.size() < 6'000) {
    std::string token;
    for (std::size_t n = 2 + random() % 4; n > 0; --n) token += kMarks[random() % kMarks.size()];
    tokens.insert(token);
  }
  while (tokens.size() < kVocabulary - 1) {
    std::string token(random() % 2, ' ');
    const bool latin = random() % 4 != 0;
    for (std::size_t n = latin ? 2 + random() % 8 : 1 + random() % 3; n > 0; --n) {
      if (latin)
        token += static_cast<char>("etaoinshrdlucmfwypvbgkqjxz"[random() % (1 + random() % 26)]);
      else
        append_utf8(static_cast<char32_t>(0x400 + random() % 0x100 + random() % 2 * 0x4a00), token);
    }
    tokens.insert(token);
  }
  std::vector<std::string> list(tokens.begin(), tokens.end());
  list.emplace_back("<end>");
  const auto end = static_cast<TokenId>(list.size() - 1);
  return std::make_shared<const TokenTable>(std::move(list), std::vector{end},
                                            std::vector<TokenId>{});
}

const std::shared_ptr<const TokenTable>& table() {
  static const std::shared_ptr<const TokenTable> made = make_table();
  return made;
}

// The longest tokens, one after the other.
std::vector<TokenId> tokens_of(std::string_view text) {
  std::map<std::string_view, TokenId> ids;
  for (TokenId id = 0; table()->contains(id); ++id) ids[table()->bytes(id)] = id;
  std::vector<TokenId> out;
  while (!text.empty()) {
    std::size_t length = std::min(text.size(), table()->longest());
    while (!ids.contains(text.substr(0, length))) --length;
    out.push_back(ids.at(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return out;
}

struct Example {
  Grammar grammar;
  std::string answer;
};

// Twenty members: strings, limited strings, numbers, lists, enums, objects.
Example twenty_members() {
  constexpr const char* kMembers[] = {
      R"({"type":"string"})", R"({"type":"string","maxLength":200})",
      R"({"type":"integer","minimum":0,"maximum":100000})",
      R"({"type":"array","items":{"type":"string"},"maxItems":10})",
      R"({"type":"object","properties":{"street":{"type":"string"},"open":{"type":"boolean"}}})"};
  constexpr const char* kValues[] = {R"("the lazy dog and the others, \"said\" he.")",
                                     R"("some more text that is longer than the other one was")",
                                     "4711", R"(["one", "two", "three"])",
                                     R"({"street": "the long one", "open": true})"};
  std::string schema = R"({"type":"object","properties":{)", answer = "{\n";
  for (int i = 0; i < 20; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    schema += fmt::format("{}\"member_number_{}\":{}", comma, i, kMembers[i % 5]);
    answer += fmt::format("{}\n  \"member_number_{}\": {}", comma, i, kValues[i % 5]);
  }
  answer.replace(1, 2, "\n");
  schema += R"(},"required":["member_number_0","member_number_7"]})";
  return {*json_schema_grammar(boost::json::parse(schema)), answer + "\n}"};
}

Example any_object() { return {*json_object_grammar(), twenty_members().answer}; }

// Every division of the letters into words is possible.
Example ambiguous_words() {
  std::string answer;
  for (int i = 0; i < 100; ++i) answer += "theotherswere";
  return {*parse_gbnf(R"(root ::= ([a-z]{1,20} " "?){200,400})"), answer};
}

// Times mask and advance for each token of an answer; `fresh`: nothing is known of the grammar.
void follow(benchmark::State& state, const Example& example, bool fresh) {
  const std::vector<TokenId> tokens = tokens_of(example.answer);
  auto masks = std::make_shared<TokenMasks>(example.grammar, table());
  std::chrono::steady_clock::duration slowest{};
  for (auto step : state) {
    (void)step;
    if (fresh) {
      state.PauseTiming();
      masks = std::make_shared<TokenMasks>(example.grammar, table());
      state.ResumeTiming();
    }
    GrammarConstraint constraint(masks);
    for (const TokenId token : tokens) {
      const auto start = std::chrono::steady_clock::now();
      const auto mask = *constraint.allowed();
      const auto index = static_cast<std::size_t>(token);
      if ((mask[index / 64] >> index % 64 & 1) == 0) return state.SkipWithError("not allowed");
      constraint.advance(token);
      slowest = std::max(slowest, std::chrono::steady_clock::now() - start);
    }
  }
  state.counters["s_slowest"] = std::chrono::duration<double>(slowest).count();
  state.counters["s_per_token"] = benchmark::Counter(
      static_cast<double>(tokens.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void AnyObjectFirstAnswer(benchmark::State& state) { follow(state, any_object(), true); }
void AnyObjectNextAnswers(benchmark::State& state) { follow(state, any_object(), false); }
void SchemaFirstAnswer(benchmark::State& state) { follow(state, twenty_members(), true); }
void SchemaNextAnswers(benchmark::State& state) { follow(state, twenty_members(), false); }
void AmbiguousFirstAnswer(benchmark::State& state) { follow(state, ambiguous_words(), true); }
void AmbiguousNextAnswers(benchmark::State& state) { follow(state, ambiguous_words(), false); }

void PrepareSchema(benchmark::State& state) {
  const Example example = twenty_members();
  for (auto step : state) {
    (void)step;
    benchmark::DoNotOptimize(std::make_shared<TokenMasks>(example.grammar, table()));
  }
}
void PrepareVocabulary(benchmark::State& state) {
  for (auto step : state) {
    (void)step;
    benchmark::DoNotOptimize(make_table());
  }
}

BENCHMARK(AnyObjectFirstAnswer)->Unit(benchmark::kMillisecond);
BENCHMARK(AnyObjectNextAnswers)->Unit(benchmark::kMillisecond);
BENCHMARK(SchemaFirstAnswer)->Unit(benchmark::kMillisecond);
BENCHMARK(SchemaNextAnswers)->Unit(benchmark::kMillisecond);
BENCHMARK(AmbiguousFirstAnswer)->Unit(benchmark::kMillisecond);
BENCHMARK(AmbiguousNextAnswers)->Unit(benchmark::kMillisecond);
BENCHMARK(PrepareSchema)->Unit(benchmark::kMillisecond);
BENCHMARK(PrepareVocabulary)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace strata
