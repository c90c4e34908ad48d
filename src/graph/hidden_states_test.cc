#include "graph/hidden_states.h"

#include <gtest/gtest.h>

#include "graph/builder.h"

namespace strata {
namespace {

constexpr std::int32_t kVocabulary = 12;
constexpr std::int32_t kWidth = 4;

Weight matrix(const std::string& name) {
  return {name, WeightRole::kMatrix, FormatId::F32, kWidth, kVocabulary, 1};
}
Weight vector(const std::string& name, std::int64_t elements) {
  return {name, WeightRole::kVector, FormatId::F32, elements, 1, 1};
}

class HiddenStates : public ::testing::Test {
 protected:
  HiddenStates() : builder_(Graph{}) {
    embedding_ = builder_.add_weight(matrix("embedding"));
    const auto norm = builder_.add_weight(vector("norm", kWidth));
    normed_ = builder_.norm(builder_.select_logit_rows(builder_.embed(embedding_, 1.0f)), norm, 0);
  }

  Result<Graph> stripped(ValueId output) {
    auto graph = builder_.finish(output);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return without_output_head(std::move(graph).value());
  }

  static std::vector<std::string> weights(const Graph& graph) {
    std::vector<std::string> names;
    for (const Weight& weight : graph.weights) names.push_back(weight.name);
    return names;
  }

  GraphBuilder builder_;
  WeightId embedding_;
  ValueId normed_;
};

TEST_F(HiddenStates, TheHeadAndWhatChangesLogitsGoWithTheirWeights) {
  const auto head = builder_.add_weight(matrix("head"));
  const auto bias = builder_.add_weight(vector("bias", kVocabulary));
  const auto logits = builder_.matmul(normed_, {head, bias});
  builder_.scale(logits, 0.5f);
  builder_.softcap(logits, 30.0f);
  const auto graph = stripped(logits);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->output, normed_);
  EXPECT_EQ(graph->output_width(), kWidth);
  EXPECT_EQ(graph->vocabulary, kVocabulary);
  EXPECT_EQ(graph->ops.size(), 3u);
  EXPECT_EQ(weights(*graph), (std::vector<std::string>{"embedding", "norm"}));
}

TEST_F(HiddenStates, AHeadThatIsTheEmbeddingStaysLoaded) {
  const auto scale = builder_.add_weight(vector("scale", 1));
  const auto graph = stripped(builder_.matmul(normed_, {embedding_, std::nullopt, scale}));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(weights(*graph), (std::vector<std::string>{"embedding", "norm"}));
}

TEST_F(HiddenStates, AGraphWithoutAHeadStaysAsItIs) {
  const auto graph = stripped(normed_);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->output, normed_);
  EXPECT_EQ(graph->ops.size(), 3u);
}

TEST_F(HiddenStates, AHeadBeforeOtherWeightsIsAnErrorNotALoadForNothing) {
  const auto head = builder_.add_weight(matrix("head"));
  const auto late = builder_.add_weight(vector("late", kWidth));
  const auto graph = stripped(builder_.matmul(builder_.norm(normed_, late, 0), {head}));
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("'head'"), std::string::npos);
}

}  // namespace
}  // namespace strata
