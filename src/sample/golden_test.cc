// The sampler held against another implementation: tools/make_sampler_goldens.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "sample/sampler.h"

namespace strata {
namespace {

struct Case {
  std::string name;
  SamplingParams params;
  std::vector<TokenId> history;
  double mu = 0;
  std::vector<float> logits;
  std::vector<std::pair<TokenId, double>> expected;  // ascending tokens, probabilities
};

// Numbers up to the end of the line; -inf is one.
template <typename T>
std::vector<T> numbers(std::istringstream& line) {
  std::vector<T> out;
  for (std::string word; line >> word;) out.push_back(static_cast<T>(std::stod(word)));
  return out;
}

void set_field(SamplingParams& params, const std::string& name, double value) {
  const auto fields = sampling_fields();
  const auto field = std::ranges::find(fields, name, &SamplingField::name);
  ASSERT_NE(field, fields.end()) << name;
  std::visit(
      [&](auto member) {
        params.*member = static_cast<std::remove_reference_t<decltype(params.*member)>>(value);
      },
      field->member);
}

SamplingParams nothing_on() {
  SamplingParams params;
  params.temperature = 1;
  params.top_k = 0;
  params.top_p = 1;
  params.min_p = 0;
  return params;
}

// A text of one byte per token.
void add_breaker(const std::vector<TokenId>& tokens, std::vector<BreakerPart>& parts) {
  const auto text = static_cast<std::int32_t>(parts.size());
  for (std::int32_t i = 0; i < std::ssize(tokens); ++i)
    parts.push_back({tokens[static_cast<std::size_t>(i)], text, i,
                     i + 1 < std::ssize(tokens) ? i + 1 : BreakerPart::kOutside});
  std::ranges::sort(parts);
}

void read_line(const std::string& word, std::istringstream& line, Case& c) {
  if (word == "set") {
    std::string name;
    double value = 0;
    ASSERT_TRUE(line >> name >> value) << line.str();
    set_field(c.params, name, value);
  } else if (word == "order") {
    auto order = parse_sampling_order(line.str().substr(6));
    ASSERT_TRUE(order.ok()) << order.status().message();
    c.params.order = *order;
  } else if (word == "bias") {
    const auto pair = numbers<float>(line);
    c.params.logit_bias.emplace_back(static_cast<TokenId>(pair.at(0)), pair.at(1));
  } else if (word == "breaker") {
    add_breaker(numbers<TokenId>(line), c.params.dry_breakers);
  } else if (word == "history") {
    c.history = numbers<TokenId>(line);
  } else if (word == "mu") {
    ASSERT_TRUE(line >> c.mu) << line.str();
  } else if (word == "logits") {
    c.logits = numbers<float>(line);
  } else if (word == "expect") {
    const auto list = numbers<double>(line);
    for (std::size_t i = 0; i + 1 < list.size(); i += 2)
      c.expected.emplace_back(static_cast<TokenId>(list[i]), list[i + 1]);
  } else {
    FAIL() << "the golden has a line '" << word << "'";
  }
}

std::vector<Case> read_cases() {
  std::ifstream file(STRATA_SOURCE_DIR "/src/sample/testdata/distributions.txt");
  EXPECT_TRUE(file.good());
  std::vector<Case> cases;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "#") continue;
    if (word == "case") {
      cases.push_back({});
      cases.back().params = nothing_on();
      line >> cases.back().name;
    } else {
      read_line(word, line, cases.back());
    }
  }
  return cases;
}

// A draw takes the first token whose cumulative probability is above its uniform number, so many
// draws fix every probability.
void expect_draws(const Case& c) {
  Sampler sampler;
  for (std::uint32_t position = 0; position < 500; ++position) {
    const RandomKey key{11, 0, position};
    const double number = uniform(key);
    double sum = 0, gap = 1;
    auto expected = c.expected.begin();
    for (auto at = c.expected.begin(); at != c.expected.end(); ++at) {
      sum += at->second;
      gap = std::min(gap, std::fabs(sum - number));
      if (sum <= number && expected + 1 != c.expected.end()) expected = at + 1;
    }
    if (gap < 1e-5) continue;
    SamplerState state{c.mu};
    const auto token = sampler.sample(c.logits, c.params, c.history, key, state, {});
    ASSERT_TRUE(token.ok()) << c.name << ": " << token.status().message();
    ASSERT_EQ(*token, expected->first) << c.name << " at " << number;
    const double surprise = -std::log2(expected->second);
    const double mu = c.mu - double{c.params.mirostat_eta} * (surprise - c.params.mirostat_tau);
    ASSERT_NEAR(*state.mirostat_mu, c.params.mirostat == 0 ? c.mu : mu, 1e-5) << c.name;
  }
}

TEST(SamplerGolden, EveryTokenIsDrawnAsOftenAsExpected) {
  const auto cases = read_cases();
  ASSERT_GT(cases.size(), 100u);
  for (const Case& c : cases) {
    ASSERT_TRUE(c.params.validate(static_cast<std::int32_t>(c.logits.size())).ok()) << c.name;
    ASSERT_FALSE(c.expected.empty()) << c.name;
    expect_draws(c);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace strata
