// Reference models against logits of an independent implementation, and the fast mode against the
// reference mode on re-encoded copies.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "formats/all.h"
#include "tests/model_fixture.h"
#include "tests/shared_data.h"

namespace strata {
namespace {

using testing::load_model;
using testing::ModelOptions;
using testing::reference_path;

constexpr double kTolerance = 2e-3;  // of the reference data, for f32 activations
constexpr double kMargin = 0.01;     // below it the greedy choice may go either way
constexpr std::size_t kGreedy = STRATA_SLOW ? 4 : 1000;  // recorded tokens to follow

boost::json::value read_json(const std::string& path) {
  return boost::json::parse(testing::read_file(path));
}

std::vector<TokenId> to_tokens(const boost::json::value& list) {
  std::vector<TokenId> tokens;
  for (const auto& token : list.as_array()) tokens.push_back(token.to_number<TokenId>());
  return tokens;
}

class ReferenceModel : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { STRATA_REQUIRE_REFERENCE(GetParam()); }

  // Largest difference at the recorded positions of a prompt.
  static double largest_difference(const LogitRows& rows, const boost::json::value& prompt) {
    double largest = 0;
    for (const auto& [position, values] : prompt.at("logits").as_object()) {
      const auto row = rows.row(std::stoi(std::string(position)));
      std::size_t i = 0;
      for (const auto& value : values.as_array())
        largest = std::max(largest, std::fabs(double{row[i++]} - value.to_number<double>()));
    }
    return largest;
  }

  // Follows the recorded tokens; stops where two tokens nearly tie.
  static void check_greedy(testing::LoadedModel& model, std::vector<TokenId> tokens,
                           std::vector<float> row, const boost::json::value& prompt) {
    const auto& margins = prompt.at("greedy_margin").as_array();
    const auto greedy = to_tokens(prompt.at("greedy"));
    for (std::size_t i = 0; i < std::min(greedy.size(), kGreedy); ++i) {
      const auto best = std::ranges::max_element(row) - row.begin();
      if (best != greedy[i]) {
        EXPECT_LE(margins[i].to_number<double>(), kMargin) << "greedy token " << i;
        return;
      }
      tokens.push_back(greedy[i]);
      const auto rows =
          model.compute(static_cast<Position>(tokens.size()) - 1, std::span(tokens).last(1));
      ASSERT_TRUE(rows.ok()) << rows.status().message();
      row.assign(rows->row(0).begin(), rows->row(0).end());
    }
  }
};

TEST_P(ReferenceModel, GivesTheIndependentLogitsInReferenceMode) {
  const std::string base = reference_path(GetParam());
  ModelOptions options;
  options.cpu = {2, Isa::kBest, true};
  auto model = load_model(base + ".gguf", options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  double largest = 0;
  const auto recorded = read_json(base + ".json");
  for (const auto& prompt : recorded.at("prompts").as_array()) {
    const auto tokens = to_tokens(prompt.at("tokens"));
    const auto rows = (*model)->compute(0, tokens);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    largest = std::max(largest, largest_difference(*rows, prompt));
    const auto last = rows->row(rows->count() - 1);
    check_greedy(**model, tokens, {last.begin(), last.end()}, prompt);
  }
  EXPECT_LT(largest, kTolerance);
  std::printf("%s: largest logit difference %.2e\n", GetParam(), largest);
}

// Of two sets of logits: KL(a || b) and the variance of a's logits.
struct Divergence {
  int rows = 0;
  double kl = 0;        // summed over the rows; at the end their mean
  double variance = 0;  // of the logits, likewise summed
  double bound = 0;     // for the mean of the divergences
};

// Adds the rows' divergence to `sum`.
void add_divergence(const LogitRows& a, const std::vector<float>& b_values, Divergence& sum) {
  const auto width = static_cast<std::size_t>(a.width);
  for (std::int32_t i = 0; i < a.count(); ++i) {
    const auto p = a.row(i);
    const auto q = std::span(b_values).subspan(static_cast<std::size_t>(i) * width, width);
    const double p_top = *std::ranges::max_element(p), q_top = *std::ranges::max_element(q);
    double p_sum = 0, q_sum = 0;
    for (std::size_t v = 0; v < width; ++v)
      p_sum += std::exp(p[v] - p_top), q_sum += std::exp(q[v] - q_top);
    double logits = 0, squares = 0;
    for (std::size_t v = 0; v < width; ++v) {
      const double lp = p[v] - p_top - std::log(p_sum), lq = q[v] - q_top - std::log(q_sum);
      sum.kl += std::exp(lp) * (lp - lq);
      logits += p[v];
      squares += double{p[v]} * p[v];
    }
    const double mean = logits / static_cast<double>(width);
    sum.variance += squares / static_cast<double>(width) - mean * mean;
    ++sum.rows;
  }
}

// An activation code is off by at most half a step of 1/127 of its block's largest value. For
// normal values of largest 2 to 3 standard deviations that is a relative error of (3 / 127) /
// sqrt(12) = 0.7 % of a row's norm per product; L layers of 4 products in series add up as noise to
// at most 0.7 % * sqrt(4 L) of the logits' spread, 4 % for L <= 7. KL divergence is half the
// variance of the logit error: (0.04 sigma)^2 / 2. In a mixture another expert may win a near tie,
// whose weight is that of the tie: ten times the bound. A state multiplies at least four such rows
// with each other (x, dt, B and C; or query, key, value and beta), so that four variances add up.
double kl_bound(const Graph& graph, double variance) {
  const bool mixture = graph.experts_used > 0;
  const bool products = std::ranges::any_of(graph.ops, [](const Op& op) {
    return std::holds_alternative<SsmScanOp>(op) || std::holds_alternative<GatedDeltaOp>(op) ||
           std::holds_alternative<Rwkv7Op>(op);
  });
  return (mixture ? 10 : 1) * (products ? 4 : 1) * 0.04 * 0.04 * variance / 2;
}

// Of a model with these options from the reference mode, over the golden prompts.
Result<Divergence> divergence(const std::string& path, const ModelOptions& options,
                              const boost::json::value& golden) {
  ModelOptions exact;
  exact.cpu.reference = true;
  STRATA_ASSIGN(const auto tested, load_model(path, options));
  STRATA_ASSIGN(const auto reference, load_model(path, exact));
  Divergence sum;
  for (const auto& prompt : golden.at("prompts").as_array()) {
    const auto tokens = to_tokens(prompt.at("tokens"));
    STRATA_ASSIGN(const LogitRows tested_rows, tested->compute(0, tokens));
    const std::vector<float> values(tested_rows.values.begin(), tested_rows.values.end());
    STRATA_ASSIGN(const LogitRows rows, reference->compute(0, tokens));
    add_divergence(rows, values, sum);
  }
  sum.kl /= sum.rows;
  sum.bound = kl_bound(reference->graph, sum.variance / sum.rows);
  return sum;
}

TEST_P(ReferenceModel, FastModeStaysCloseToReferenceModeInEveryFormat) {
  const std::string base = reference_path(GetParam());
  const auto golden = read_json(base + ".json");
  const testing::TemporaryFolder folder;
  for (const FormatId format : ids_of(AllFormats{})) {
    SCOPED_TRACE(format_name(format));
    const std::string path = folder.path("model.gguf");
    const Status status = testing::reencode_model(base + ".gguf", format, path);
    if (status.code() == StatusCode::kUnsupported) continue;  // rows too short for the format
    ASSERT_TRUE(status.ok()) << status.message();
    const auto found = divergence(path, {}, golden);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_LT(found->kl, found->bound);
    std::printf("%s %s: KL %.2e nats, bound %.2e\n", GetParam(),
                std::string(format_name(format)).c_str(), found->kl, found->bound);
  }
}

// Keys and values of 8-bit codes err like activations of 8-bit codes, in two products per layer
// instead of four.
TEST_P(ReferenceModel, CodedCacheStaysCloseToOneOfF32) {
  const std::string base = reference_path(GetParam());
  ModelOptions options;
  options.cpu.reference = true;
  options.cache = CacheFormat::kQ8_0;
  const auto found = divergence(base + ".gguf", options, read_json(base + ".json"));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_LT(found->kl, found->bound / 2);
  std::printf("%s q8_0 cache: KL %.2e nats, bound %.2e\n", GetParam(), found->kl, found->bound / 2);
}

INSTANTIATE_TEST_SUITE_P(Golden, ReferenceModel, ::testing::ValuesIn(testing::kReferenceModels),
                         testing::test_name);

}  // namespace
}  // namespace strata
