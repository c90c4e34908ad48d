#include "gguf/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gguf/test_support.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ModelManifest> manifest_of(const GgufWriter& writer, bool require_tensors = false) {
  const auto bytes = testing::written(writer);
  STRATA_ASSIGN(GgufFile file, GgufFile::parse(bytes, bytes.size(), "folder/file.gguf"));
  return ModelManifest::from_file(std::move(file), require_tensors);
}

ModelManifest sample() {
  const auto bytes = testing::sample_model();
  return *ModelManifest::from_file(*GgufFile::parse(bytes, bytes.size(), "folder/file.gguf"));
}

TEST(ModelManifest, PrefixesKeysWithTheArchitecture) {
  const ModelManifest manifest = sample();
  EXPECT_EQ(manifest.architecture(), "llama");
  EXPECT_EQ(manifest.name(), "Sample");
  EXPECT_EQ(manifest.full_key("block_count"), "llama.block_count");
  EXPECT_TRUE(manifest.has("block_count"));
  EXPECT_FALSE(manifest.has("general.name"));
  EXPECT_EQ(*manifest.integer("block_count", 1, 100), 2);
  EXPECT_EQ(*manifest.real("rope.freq_base"), 10000.0);
}

TEST(ModelManifest, FallsBackOnlyForAbsentKeys) {
  const ModelManifest manifest = sample();
  EXPECT_EQ(*manifest.integer_or("none", 7, 1, 2), 7);
  EXPECT_EQ(*manifest.real_or("none", 0.5), 0.5);
  EXPECT_EQ(*manifest.boolean_or("none", true), true);
  EXPECT_EQ(*manifest.string_or("none", "x"), "x");
  EXPECT_FALSE(manifest.integer_or("rope.freq_base", 7, 1, 9).ok());
  EXPECT_FALSE(manifest.boolean_or("block_count", true).ok());
  EXPECT_FALSE(manifest.string_or("block_count", "x").ok());
}

TEST(ModelManifest, RangeErrorsNameTheFullKeyAndTheRange) {
  const auto error = sample().integer("block_count", 3, 64).status().message();
  EXPECT_THAT(error, AllOf(HasSubstr("llama.block_count"), HasSubstr("3 to 64"), HasSubstr("2")));
  EXPECT_THAT(sample().integer("none", 1, 2).status().message(), HasSubstr("`llama.none`"));
}

TEST(ModelManifest, RefusesNumbersThatAreNotFinite) {
  GgufWriter writer;
  writer.add("general.architecture", "a");
  writer.add("a.nan", std::numeric_limits<float>::quiet_NaN());
  writer.add("a.inf", std::numeric_limits<double>::infinity());
  const auto manifest = manifest_of(writer);
  ASSERT_TRUE(manifest.ok());
  EXPECT_FALSE(manifest->real("nan").ok());
  EXPECT_FALSE(manifest->real_or("inf", 1.0).ok());
}

TEST(ModelManifest, PerLayerTakesAnArrayOrRepeatsAScalar) {
  const ModelManifest manifest = sample();
  EXPECT_THAT(*manifest.per_layer("attention.head_count", 2, 1, 8), ElementsAre(4, 8));
  EXPECT_THAT(*manifest.per_layer("context_length", 3, 1, 128), ElementsAre(128, 128, 128));
  EXPECT_THAT(manifest.per_layer("attention.head_count", 3, 1, 8).status().message(),
              AllOf(HasSubstr("llama.attention.head_count"), HasSubstr("2 values")));
  EXPECT_FALSE(manifest.per_layer("attention.head_count", 2, 1, 7).ok());
  EXPECT_FALSE(manifest.per_layer("none", 2, 1, 7).ok());
}

TEST(ModelManifest, ChecksTensorShapes) {
  const ModelManifest manifest = sample();
  EXPECT_TRUE(manifest.tensor("token_embd.weight", {8, 8}).ok());
  EXPECT_TRUE(manifest.tensor("output_norm.weight", {8}).ok());
  EXPECT_TRUE(manifest.tensor("blk.0.experts", {32, 2, 2, 2}).ok());
  EXPECT_THAT(manifest.tensor("token_embd.weight", {8, 9}).status().message(),
              AllOf(HasSubstr("8 x 8"), HasSubstr("8 x 9")));
  EXPECT_FALSE(manifest.tensor("token_embd.weight", {8}).ok());
  EXPECT_FALSE(manifest.tensor("token_embd.weight", {8, 8, 1, 1, 1}).ok());
  EXPECT_THAT(manifest.tensor("none", {8}).status().message(), HasSubstr("`none` (8) is missing"));
  EXPECT_EQ(*manifest.optional_tensor("none", {8}), nullptr);
  EXPECT_FALSE(manifest.optional_tensor("output_norm.weight", {9}).ok());
}

TEST(ModelManifest, NeedsAnArchitectureAndTensors) {
  EXPECT_THAT(manifest_of(GgufWriter()).status().message(),
              AllOf(HasSubstr("folder/file.gguf"), HasSubstr("general.architecture")));
  GgufWriter vocabulary;
  vocabulary.add("general.architecture", "llama");
  EXPECT_TRUE(manifest_of(vocabulary, false).ok());
  EXPECT_EQ(manifest_of(vocabulary, false)->name(), "file.gguf");
  EXPECT_THAT(manifest_of(vocabulary, true).status().message(), HasSubstr("no tensors"));
}

}  // namespace
}  // namespace strata
