#include "describe.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/printable.h"
#include "gguf/test_support.h"

namespace strata::apps {
namespace {

namespace json = boost::json;
using strata::testing::ByteVector;

json::object described(const ByteVector& bytes, bool with_tensors = false) {
  auto file = GgufFile::parse(bytes, bytes.size(), "folder/m.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  return describe(*ModelManifest::from_file(std::move(file).value(), false), with_tensors);
}

TEST(Describe, CountsParametersBytesAndFormats) {
  const json::object model = described(strata::testing::sample_model(), true);
  EXPECT_EQ(model.at("name").as_string(), "Sample");
  EXPECT_EQ(model.at("parameters").to_number<int>(), 8 + 64 + 512 + 256);
  EXPECT_EQ(model.at("tensor_bytes").to_number<int>(), 32 + 256 + 288 + 144);
  EXPECT_DOUBLE_EQ(model.at("bits_per_weight").as_double(), 8.0 * 720 / 840);
  EXPECT_EQ(json::serialize(model.at("formats").at(0)),
            R"({"format":"F32","tensors":2,"parameters":72,"bytes":288})");
  EXPECT_EQ(json::serialize(model.at("heads")), "[4,8]");
  EXPECT_EQ(model.at("vocabulary_size").to_number<int>(), 3);
  EXPECT_EQ(model.at("tensors").as_array().size(), 4u);
  EXPECT_EQ(json::serialize(model.at("tensors").at(2).at("shape")), "[256,2]");
}

// Text that is not UTF-8, numbers JSON cannot hold and token ids outside the vocabulary.
TEST(Describe, HostileValuesStillMakeValidJson) {
  GgufWriter writer;
  writer.add("general.architecture", "llama\xff");
  writer.add("general.name", std::string_view("n\0\xc3\"\x1b", 5));
  writer.add("llama\xff.context_length", "many");
  writer.add("general.sampling.temp", std::numeric_limits<float>::quiet_NaN());
  writer.add("general.sampling.top_\xfe", 0.1f);
  writer.add("tokenizer.ggml.bos_token_id", std::int32_t{-1});
  writer.add("tokenizer.ggml.eos_token_id", std::numeric_limits<std::uint64_t>::max());
  writer.add("tokenizer.ggml.eot_token_id", "two");
  const std::string tokens[] = {"\xe2\x82"};
  writer.add_array("tokenizer.ggml.tokens", tokens);
  writer.add("tokenizer.ggml.padding_token_id", std::uint32_t{0});
  writer.add("tokenizer.chat_template", "{{ \xf0\x9f }}");
  const std::string text = json::serialize(described(strata::testing::written(writer), true));
  EXPECT_EQ(replace_invalid_utf8(text), text);
  boost::system::error_code error;
  const json::value parsed = json::parse(text, error);
  ASSERT_FALSE(error) << text;
  EXPECT_EQ(parsed.at("context_length").as_string(), "many");
  EXPECT_EQ(parsed.at("sampling").at("temp").as_string(), "nan");
  const json::value& special = parsed.at("tokenizer").at("special_tokens");
  EXPECT_EQ(special.at("bos").as_object().size(), 1u);
  EXPECT_EQ(special.at("eos").at("id").as_uint64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(special.at("padding").at("text").as_string(), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Describe, TokenizersAreNamedByKind) {
  for (const auto& [name, kind] : {std::pair("t5", "Unigram"), std::pair("bert", "WordPiece"),
                                   std::pair("plamo2", "not supported")}) {
    GgufWriter writer;
    writer.add("general.architecture", "llama");
    writer.add("tokenizer.ggml.model", name);
    const json::object model = described(strata::testing::written(writer));
    EXPECT_EQ(model.at("tokenizer").at("kind").as_string(), kind);
  }
}

TEST(Describe, FloatsAreTheShortestOfTheirOwnWidth) {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("general.sampling.top_p", 0.95f);
  const json::object model = described(strata::testing::written(writer));
  EXPECT_EQ(model.at("sampling").at("top_p").as_double(), 0.95);
}

}  // namespace
}  // namespace strata::apps
