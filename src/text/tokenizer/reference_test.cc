// Real vocabularies against the ids that their own tokenizers give.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "gguf/gguf_file.h"
#include "tests/shared_data.h"
#include "text/tokenizer/tokenizer.h"

namespace strata {
namespace {

std::string path_of(const std::string& name) {
  return (testing::shared_data_root() / "tokenizers" / ("ggml-vocab-" + name + ".gguf")).string();
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at = text.find(separator); at != text.npos; at = text.find(separator, from)) {
    parts.push_back(text.substr(from, at - from));
    from = at + separator.size();
  }
  return parts;  // what follows the last separator is empty in these files
}

std::vector<TokenId> parse_ids(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<TokenId>(in), {}};
}

std::unique_ptr<const Tokenizer> load(const std::string& name) {
  const auto file = GgufFile::open(path_of(name));
  EXPECT_TRUE(file.ok()) << file.status().message();
  auto tokenizer = Tokenizer::create(file.value().metadata());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

constexpr EncodeOptions kBare{.add_bos = false, .add_eos = false};

class Reference : public ::testing::TestWithParam<const char*> {};

TEST_P(Reference, GivesTheIdsOfTheModelsOwnTokenizer) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto tokenizer = load(GetParam());
  const auto texts = split(read_file(path_of(GetParam()) + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split(read_file(path_of(GetParam()) + ".out"), "\n");
  ASSERT_EQ(texts.size(), 46u);
  ASSERT_EQ(lines.size(), 46u);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto ids = tokenizer->encode(texts[i], false, kBare);
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(ids.value(), parse_ids(lines[i])) << "text " << i << ": " << texts[i];
  }
}

TEST_P(Reference, TextsRoundTrip) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto tokenizer = load(GetParam());
  for (const std::string& text :
       split(read_file(path_of(GetParam()) + ".inp"), "\n__ggml_vocab_test__\n")) {
    const auto ids = tokenizer->encode(text, false);
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    const auto back = tokenizer->decode(ids.value());
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back.value(), text);
  }
}

TEST_P(Reference, BytesThatAreNotUtf8AreKeptOrRefusedByName) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto tokenizer = load(GetParam());
  for (int byte = 0x80; byte < 0x100; ++byte) {
    std::string text = "a? b\xe2\x96";
    text[1] = static_cast<char>(byte);
    const auto ids = tokenizer->encode(text, true);
    if (ids.ok())
      EXPECT_EQ(tokenizer->decode(ids.value()).value(), text) << byte;
    else
      EXPECT_NE(ids.status().message().find(fmt::format("byte 0x{:02x}", byte)), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Reference,
                         ::testing::Values("gpt-2", "starcoder", "deepseek-coder", "llama-spm"));

TEST(Spm, ASpaceIsPutBeforeTextThatFollowsASpecialToken) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto tokenizer = load("llama-spm");
  const auto ids = tokenizer->encode("<s>G", true);
  ASSERT_TRUE(ids.ok());
  ASSERT_EQ(ids.value().size(), 2u);
  EXPECT_EQ(ids.value()[0], tokenizer->special_ids().bos);
  EXPECT_EQ(tokenizer->token_text(ids.value()[1]), "\xe2\x96\x81G");
}

TEST(Tokenizer, WordPieceVocabulariesAreRefusedByName) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto file = GgufFile::open(path_of("bert-bge"));
  ASSERT_TRUE(file.ok());
  const auto tokenizer = Tokenizer::create(file.value().metadata());
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(tokenizer.status().message().find("bert"), std::string::npos);
}

}  // namespace
}  // namespace strata
