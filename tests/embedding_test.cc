// Hidden states and embeddings: encoders against an independent implementation, causal models
// through their heads, and the law of exactness for both.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <future>

#include "engine/engine.h"
#include "engine/pooling.h"
#include "formats/registry.h"
#include "graph/hidden_states.h"
#include "models/all.h"
#include "tests/model_fixture.h"
#include "tests/shared_data.h"
#include "text/tokenizer/tokenizer.h"

namespace strata {
namespace {

using testing::EditableModel;
using testing::reference_path;
using testing::TemporaryFolder;
using Rows = std::vector<std::vector<float>>;

boost::json::value read_json(const std::string& path) {
  return boost::json::parse(testing::read_file(path));
}

template <typename T>
std::vector<T> numbers(const boost::json::value& list) {
  std::vector<T> out;
  for (const auto& number : list.as_array()) out.push_back(number.to_number<T>());
  return out;
}

EngineOptions hidden(EngineOptions options = {}) {
  options.output = EngineOutput::kHidden;
  options.logit_rows = 65536;
  if (options.threads == 0) options.threads = 2;
  return options;
}

std::unique_ptr<Engine> load(const std::string& path, const EngineOptions& options) {
  auto engine = Engine::load(path, options, {});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? std::move(engine).value() : nullptr;
}

class PoolingSink : public Sink {
 public:
  explicit PoolingSink(Pooling pooling) : pooler_(pooling) {}
  void on_logits(Position, std::span<const float> row) override { pooler_.add(row); }
  void on_token(std::int32_t, const ChosenToken&) override {
    ADD_FAILURE() << "nothing is generated";
  }
  void on_finish(std::int32_t, FinishReason, const Status& status) override {
    done_.set_value(status);
  }
  Rows wait() {
    const Status status = done_.get_future().get();
    EXPECT_TRUE(status.ok()) << status.message();
    auto rows = pooler_.finish(false);
    EXPECT_TRUE(rows.ok()) << rows.status().message();
    return rows.ok() ? std::move(rows).value() : Rows();
  }

 private:
  Pooler pooler_;
  std::promise<Status> done_;
};

std::shared_ptr<PoolingSink> submit(Engine& engine, const std::vector<TokenId>& tokens,
                                    Pooling pooling) {
  Request request;
  request.tokens = tokens;
  request.max_tokens = 0;
  request.logit_positions = pooled_positions(pooling, static_cast<Position>(tokens.size()));
  auto sink = std::make_shared<PoolingSink>(pooling);
  const auto id = engine.submit(std::move(request), sink);
  EXPECT_TRUE(id.ok()) << id.status().message();
  return sink;
}

std::string load_error(const std::string& path, const EngineOptions& options) {
  const auto engine = Engine::load(path, options, {});
  return engine.ok() ? "" : engine.status().message();
}

class Encoder : public ::testing::TestWithParam<const char*> {
 protected:
  Encoder() : path_(reference_path(GetParam()) + ".gguf"), golden_(read_json(json_path())) {}

  std::vector<std::vector<TokenId>> texts() const {
    std::vector<std::vector<TokenId>> all;
    for (const auto& sentence : golden_.at("sentences").as_array())
      all.push_back(numbers<TokenId>(sentence.at("tokens")));
    return all;
  }
  static std::string json_path() { return reference_path(GetParam()) + ".json"; }

  const std::string path_;
  const boost::json::value golden_;
};

TEST_P(Encoder, GivesTheIndependentTokensAndEmbeddings) {
  const auto manifest = ModelManifest::open(path_);
  ASSERT_TRUE(manifest.ok());
  const auto tokenizer = Tokenizer::create(manifest->metadata());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto engine = load(path_, hidden({.reference = true}));
  ASSERT_FALSE(engine->causal());
  double largest = 0;
  for (const auto& sentence : golden_.at("sentences").as_array()) {
    const auto tokens = (*tokenizer)->encode(std::string(sentence.at("text").as_string()), false);
    ASSERT_TRUE(tokens.ok()) << tokens.status().message();
    ASSERT_EQ(*tokens, numbers<TokenId>(sentence.at("tokens"))) << sentence.at("text");
    for (const Pooling pooling : {Pooling::kMean, Pooling::kFirst, Pooling::kLast}) {
      const auto expected = numbers<double>(sentence.at(to_string(pooling)));
      const Rows rows = submit(*engine, *tokens, pooling)->wait();
      ASSERT_EQ(rows.size(), 1u);
      ASSERT_EQ(rows[0].size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        largest = std::max(largest, std::fabs(rows[0][i] - expected[i]));
    }
  }
  EXPECT_LT(largest, 2e-5);  // of values around 1
  std::printf("%s: largest difference %.2e\n", GetParam(), largest);
}

// Every token's row, alone on one thread first, then in company, on two threads and in steps of
// other sizes, and on another instruction set.
TEST_P(Encoder, ATextsRowsDependOnNoOtherText) {
  const TemporaryFolder folder;
  const std::string quantized = folder.path("model.gguf");
  ASSERT_TRUE(testing::reencode_model(path_, FormatId::Q8_0, quantized).ok());
  const auto texts = this->texts();
  for (const std::string& path : {path_, quantized}) {
    std::vector<Rows> alone;
    const auto first = load(path, hidden({.threads = 1}));
    for (const auto& tokens : texts)
      alone.push_back(submit(*first, tokens, Pooling::kNone)->wait());
    for (const EngineOptions& options :
         {EngineOptions{.threads = 2}, EngineOptions{.threads = 1, .step_rows = 1000},
          EngineOptions{.threads = 2, .isa = Isa::kScalar, .sequences = 3, .step_rows = 400}}) {
      const auto engine = load(path, hidden(options));
      std::vector<std::shared_ptr<PoolingSink>> sinks;
      for (const auto& tokens : texts) sinks.push_back(submit(*engine, tokens, Pooling::kNone));
      for (std::size_t t = 0; t < texts.size(); ++t) {
        const Rows rows = sinks[t]->wait();
        ASSERT_EQ(rows.size(), alone[t].size());
        for (std::size_t i = 0; i < rows.size(); ++i)
          ASSERT_EQ(std::memcmp(rows[i].data(), alone[t][i].data(), rows[i].size() * 4), 0)
              << "text " << t << " row " << i;
      }
    }
  }
}

TEST_P(Encoder, EveryRowSeesTheWholeText) {
  const auto engine = load(path_, hidden());
  const Rows rows = submit(*engine, {2, 40, 41, 3}, Pooling::kNone)->wait();
  const Rows other = submit(*engine, {2, 40, 41, 4}, Pooling::kNone)->wait();
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_NE(rows[i], other[i]) << i;
}

TEST_P(Encoder, RefusesWhatItCannotDo) {
  EXPECT_NE(load_error(path_, {.threads = 1}).find("`strata embed`"), std::string::npos);
  const auto engine = load(path_, hidden({.context = 20, .step_rows = 4}));
  Request request;
  request.tokens.assign(21, 5);
  request.max_tokens = 0;
  const auto refused = engine->submit(request, std::make_shared<PoolingSink>(Pooling::kMean));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("21 tokens but the context holds 20"),
            std::string::npos);
  EXPECT_EQ(submit(*engine, std::vector<TokenId>(20, 5), Pooling::kMean)->wait().size(), 1u);
  request.max_tokens = 1;
  request.tokens = {5};
  const auto generating = engine->submit(request, std::make_shared<PoolingSink>(Pooling::kMean));
  ASSERT_FALSE(generating.ok());
  EXPECT_NE(generating.status().message().find("max_tokens"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, Encoder, ::testing::Values("bert", "nomic-bert"),
                         testing::test_name);

class Reranker : public ::testing::Test {
 protected:
  static EngineOptions scores(EngineOptions options = {}) {
    options = hidden(options);
    options.output = EngineOutput::kScores;
    return options;
  }
  // Of all recorded pairs at once.
  std::vector<float> run(const EngineOptions& options) const {
    const auto engine = load(path_, options);
    std::vector<std::shared_ptr<PoolingSink>> sinks;
    for (const auto& pair : pairs())
      sinks.push_back(submit(*engine, numbers<TokenId>(pair.at("tokens")), Pooling::kRank));
    std::vector<float> all;
    for (const auto& sink : sinks) {
      const Rows rows = sink->wait();
      EXPECT_EQ(rows.size(), 1u);
      EXPECT_EQ(rows.at(0).size(), 1u);
      all.push_back(rows.at(0).at(0));
    }
    return all;
  }
  const boost::json::array& pairs() const { return golden_.at("pairs").as_array(); }

  const std::string path_ = reference_path("reranker") + ".gguf";
  const boost::json::value golden_ = read_json(reference_path("reranker") + ".json");
};

TEST_F(Reranker, GivesTheIndependentScoresOfPairs) {
  const auto got = run(scores({.reference = true}));
  ASSERT_EQ(got.size(), pairs().size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], pairs()[i].at("score").to_number<double>(), 1e-5) << i;
}

TEST_F(Reranker, APairsScoreDependsOnNoOtherPair) {
  const auto together = run(scores({.sequences = 3, .step_rows = 400}));
  const auto engine = load(path_, scores({.threads = 1}));
  for (std::size_t i = 0; i < together.size(); ++i) {
    const auto tokens = numbers<TokenId>(pairs()[i].at("tokens"));
    EXPECT_EQ(submit(*engine, tokens, Pooling::kRank)->wait(), Rows{{together[i]}}) << i;
  }
}

TEST_F(Reranker, ScoresAndEmbeddingsAreNotTakenForEachOther) {
  EXPECT_NE(load_error(path_, hidden()).find("scores pairs"), std::string::npos);
  EXPECT_NE(load_error(path_, {.threads = 1}).find("scores pairs"), std::string::npos);
  EXPECT_NE(load_error(reference_path("bert") + ".gguf", scores()).find("no head"),
            std::string::npos);
}

TEST_F(Reranker, ASecondSegmentIsRefused) {
  auto model = EditableModel::read(path_);
  ASSERT_TRUE(model.ok());
  EditableModel::Tensor segments = model->take("token_types.weight");
  segments.shape[1] = 2;
  segments.bytes.resize(2 * segments.bytes.size());
  model->tensors.push_back(std::move(segments));
  const TemporaryFolder folder;
  const std::string path = folder.path("changed.gguf");
  ASSERT_TRUE(model->write(path).ok());
  const std::string error = load_error(path, scores());
  EXPECT_NE(error.find("bert.pooling_type is 4 (rank)"), std::string::npos) << error;
}

TEST(LearnedPositions, BoundTheContext) {
  const std::string message =
      load_error(reference_path("bert") + ".gguf", hidden({.context = 321}));
  EXPECT_NE(message.find("321 tokens"), std::string::npos) << message;
  EXPECT_NE(message.find("320 positions"), std::string::npos) << message;
}

class FileKeys : public ::testing::Test {
 protected:
  // A copy of the encoder, or a tiny llama, with one key changed.
  std::string with_key(const std::string& base, const std::string& key,
                       const MetadataEntry& entry) {
    auto model = EditableModel::read(base);
    EXPECT_TRUE(model.ok());
    model->changed_keys.insert_or_assign(key, entry);
    std::string path = folder_.path("changed.gguf");
    EXPECT_TRUE(model->write(path).ok());
    return path;
  }
  std::string tiny() {
    std::string path = folder_.path("tiny.gguf");
    EXPECT_TRUE(testing::write_tiny_model(path, {}).ok());
    return path;
  }

  static constexpr const char* kPooling = "bert.pooling_type";
  const std::string bert_ = reference_path("bert") + ".gguf";
  const TemporaryFolder folder_;
};

TEST_F(FileKeys, PoolingIsTheFilesUnlessItGivesNoEmbedding) {
  const auto pooling = [&](std::uint64_t type) {
    const auto manifest =
        ModelManifest::open(with_key(bert_, kPooling, {ValueType::kUint32, type}));
    return read_pooling(*manifest);
  };
  EXPECT_EQ(*pooling(0), Pooling::kNone);
  EXPECT_EQ(*pooling(1), Pooling::kMean);
  EXPECT_EQ(*pooling(2), Pooling::kFirst);
  EXPECT_EQ(*pooling(3), Pooling::kLast);
  EXPECT_EQ(*pooling(4), Pooling::kRank);
  EXPECT_FALSE(pooling(5).ok());
  EXPECT_EQ(*read_pooling(*ModelManifest::open(reference_path("nomic-bert") + ".gguf")),
            std::nullopt);
}

TEST_F(FileKeys, CausalityIsHonouredOrRefused) {
  const MetadataEntry yes{ValueType::kBool, true}, no{ValueType::kBool, false};
  EXPECT_NE(load_error(with_key(bert_, "bert.attention.causal", yes), hidden())
                .find("bert.attention.causal"),
            std::string::npos);
  const std::string path = with_key(tiny(), "llama.attention.causal", no);
  EXPECT_NE(load_error(path, {.threads = 1}).find("encoder"), std::string::npos);
  const auto engine = load(path, hidden());
  EXPECT_FALSE(engine->causal());
  EXPECT_NE(submit(*engine, {7, 8, 9}, Pooling::kFirst)->wait(),
            submit(*engine, {7, 8, 10}, Pooling::kFirst)->wait());
  const std::string windowed =
      with_key(path, "llama.attention.sliding_window", {ValueType::kUint32, std::uint64_t{16}});
  EXPECT_NE(load_error(windowed, hidden()).find("sliding window of 16"), std::string::npos);
}

// Hidden states times the head are the logits of an independent implementation.
class CausalModel : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { STRATA_REQUIRE_REFERENCE(GetParam()); }

  static double product(const EditableModel::Tensor& head, std::int64_t row,
                        const std::vector<float>& state) {
    const FormatOps& ops = *find_format(head.format);
    std::vector<float> weights(state.size());
    const std::int64_t columns = std::ssize(state);
    ops.decode_row(head.bytes.data() + row * row_bytes(ops.info, columns), columns, weights.data());
    double sum = 0;
    for (std::size_t i = 0; i < state.size(); ++i) sum += double{weights[i]} * state[i];
    return sum;
  }
};

TEST_P(CausalModel, HiddenStatesAreWhatTheHeadReads) {
  const std::string base = reference_path(GetParam());
  auto model = EditableModel::read(base + ".gguf");
  ASSERT_TRUE(model.ok());
  const bool own_head = std::ranges::any_of(
      model->tensors, [](const auto& tensor) { return tensor.name == "output.weight"; });
  const auto head = model->take(own_head ? "output.weight" : "token_embd.weight");
  const auto engine = load(base + ".gguf", hidden({.reference = true, .context = 512}));
  double largest = 0;
  const auto recorded = read_json(base + ".json");
  for (const auto& prompt : recorded.at("prompts").as_array()) {
    const auto tokens = numbers<TokenId>(prompt.at("tokens"));
    const Rows states = submit(*engine, tokens, Pooling::kNone)->wait();
    ASSERT_EQ(states.size(), tokens.size());
    for (const auto& [position, logits] : prompt.at("logits").as_object()) {
      const auto& state = states[static_cast<std::size_t>(std::stoi(std::string(position)))];
      std::int64_t token = 0;
      for (const auto& logit : logits.as_array())
        largest =
            std::max(largest, std::fabs(product(head, token++, state) - logit.to_number<double>()));
    }
  }
  EXPECT_LT(largest, 2e-3);  // of the reference data
}

INSTANTIATE_TEST_SUITE_P(Models, CausalModel,
                         ::testing::Values("llama", "qwen3", "qwen3moe", "gemma3", "lfm2", "rwkv7"),
                         testing::test_name);

// In small steps, in company, and after preemption for want of cache.
TEST(CausalEmbedding, DependsOnNoOtherText) {
  const TemporaryFolder folder;
  const std::string path = folder.path("tiny.gguf");
  ASSERT_TRUE(testing::write_tiny_model(path, {}).ok());
  std::vector<std::vector<TokenId>> texts;
  for (int i = 0; i < 9; ++i) {
    texts.emplace_back();
    for (int t = 0; t < 1 + 25 * i; ++t) texts.back().push_back((t * 37 + i * 11) % 96);
  }
  const auto alone = load(path, hidden({.threads = 1}));
  const auto engine = load(path, hidden({.sequences = 2, .step_rows = 33}));
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    std::vector<std::shared_ptr<PoolingSink>> sinks;
    for (const auto& tokens : texts) sinks.push_back(submit(*engine, tokens, pooling));
    for (std::size_t t = 0; t < texts.size(); ++t)
      EXPECT_EQ(sinks[t]->wait(), submit(*alone, texts[t], pooling)->wait()) << t;
  }
}

// The head is the last weight of every architecture, so that none is loaded in vain.
TEST(EveryArchitecture, LosesItsHeadWithItsWeights) {
  STRATA_REQUIRE_SHARED_DATA();
  int models = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::shared_data_root() / "reference")) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().filename());
    const auto manifest = ModelManifest::open(entry.path().string());
    ASSERT_TRUE(manifest.ok());
    auto graph = build_graph(*manifest);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const Graph without = without_output_head(*graph).value();
    EXPECT_LT(without.output_width(), without.vocabulary);
    for (const Weight& weight : without.weights) EXPECT_NE(weight.name, "output.weight");
    ++models;
  }
  EXPECT_GE(models, 20);
}

}  // namespace
}  // namespace strata
