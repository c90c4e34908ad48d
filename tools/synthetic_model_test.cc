#include "tools/synthetic_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/model_fixture.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

SyntheticShape tiny(std::string_view preset) {
  SyntheticShape shape = *synthetic_preset(preset);
  shape.dim = 256;
  shape.layers = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_size = 64;
  shape.feed_forward = 512;
  shape.vocabulary = 600;
  if (shape.experts > 0) shape.experts = 8;
  if (shape.experts > 0) shape.experts_used = 2;
  if (shape.experts > 0) shape.expert_feed_forward = 256;
  return shape;
}

std::string bytes_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SyntheticModel, LoadsAndGivesFiniteLogitsThatDependOnTheToken) {
  const testing::TemporaryFolder folder;
  for (const char* preset : {"1b", "moe"})
    for (const char* format : {"q4_k_m", "q4_0", "f16"}) {
      SCOPED_TRACE(fmt::format("{} {}", preset, format));
      const std::string path = folder.path("model.gguf");
      ASSERT_TRUE(write_synthetic_model(tiny(preset), format, 1, path).ok());
      auto model = testing::load_model(path, {});
      ASSERT_TRUE(model.ok()) << model.status().message();
      const std::vector<TokenId> tokens = {1, 300, 400};
      const auto logits = (*model)->compute(0, tokens);
      ASSERT_TRUE(logits.ok()) << logits.status().message();
      const auto first = logits->row(0);
      const auto last = logits->row(2);
      ASSERT_EQ(last.size(), 600u);
      for (const float logit : last) EXPECT_TRUE(std::isfinite(logit));
      EXPECT_FALSE(std::ranges::equal(first, last));
    }
}

TEST(SyntheticModel, HasTheSameBytesForTheSameSeedOnly) {
  const testing::TemporaryFolder folder;
  const auto written = [&](std::uint64_t seed) {
    const std::string path = folder.path("model.gguf");
    EXPECT_TRUE(write_synthetic_model(tiny("moe"), "q4_k_m", seed, path).ok());
    return bytes_at(path);
  };
  const std::string bytes = written(7);
  EXPECT_EQ(bytes, written(7));
  EXPECT_NE(bytes, written(8));
}

TEST(SyntheticModel, MixesFormatsAsTheirNameSays) {
  const testing::TemporaryFolder folder;
  SyntheticShape shape = tiny("1b");
  shape.layers = 8;
  const std::string path = folder.path("model.gguf");
  ASSERT_TRUE(write_synthetic_model(shape, "q4_k_m", 1, path).ok());
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok());
  std::string layers_with_more;
  for (int layer = 0; layer < 8; ++layer)
    if (file->find_tensor(fmt::format("blk.{}.ffn_down.weight", layer))->format == FormatId::Q6_K)
      layers_with_more += fmt::format("{} ", layer);
  EXPECT_EQ(layers_with_more, "0 3 6 7 ");
  EXPECT_EQ(file->find_tensor("blk.3.attn_v.weight")->format, FormatId::Q6_K);
  EXPECT_EQ(file->find_tensor("blk.3.attn_q.weight")->format, FormatId::Q4_K);
  EXPECT_EQ(file->find_tensor("output.weight")->format, FormatId::Q6_K);
}

TEST(SyntheticModel, LeavesNothingWhenItIsStopped) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("model.gguf");
  int pieces = 0;
  const auto stopped = [&] { return ++pieces == 5; };
  const Status status = write_synthetic_model(tiny("1b"), "q4_0", 1, path, stopped);
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(pieces, 5);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(SyntheticModel, RefusesWhatCannotBe) {
  const testing::TemporaryFolder folder;
  const auto refusal = [&](SyntheticShape shape, std::string_view format) {
    return std::string(
        write_synthetic_model(shape, format, 1, folder.path("model.gguf")).message());
  };
  EXPECT_THAT(refusal(tiny("1b"), "q4_2"), HasSubstr("'q4_2'"));
  SyntheticShape shape = tiny("1b");
  shape.architecture = "gpt2";
  EXPECT_THAT(refusal(shape, "q4_0"), HasSubstr("'gpt2'"));
  shape = tiny("1b");
  shape.kv_heads = 3;
  EXPECT_THAT(refusal(shape, "q4_0"), HasSubstr("--heads: 4 is no multiple of --kv-heads, 3"));
  shape = tiny("moe");
  shape.experts_used = 9;
  EXPECT_THAT(refusal(shape, "q4_0"), HasSubstr("--used: 9 is not in 1..8"));
  shape = tiny("1b");
  shape.dim = 64;
  shape.head_size = 0;
  EXPECT_THAT(refusal(shape, "q4_k"),
              HasSubstr("--dim: 64 elements are no whole Q4_K blocks of 256"));
  shape = tiny("1b");
  shape.vocabulary = 100;
  EXPECT_THAT(refusal(shape, "q4_0"), HasSubstr("--vocab: 100 is not in 512.."));
  shape = tiny("1b");
  shape.feed_forward = 100;
  EXPECT_THAT(refusal(shape, "q4_0"), HasSubstr("--ff: 100 elements are no whole Q4_0 blocks"));
  EXPECT_THAT(std::string(synthetic_preset("2b").status().message()), HasSubstr("'2b'"));
}

}  // namespace
}  // namespace strata
