// Vocabularies against the ids that other implementations give.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "gguf/gguf_file.h"
#include "tests/shared_data.h"
#include "text/tokenizer/tokenizer.h"

namespace strata {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> split_at(const std::string& text, const std::string& separator) {
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

std::unique_ptr<const Tokenizer> load(const std::string& path) {
  const auto file = GgufFile::open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  auto tokenizer = Tokenizer::create(file.value().metadata());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

std::string shared_path(const std::string& name) {
  return (testing::shared_data_root() / "tokenizers" / ("ggml-vocab-" + name + ".gguf")).string();
}

std::vector<std::string> texts_in(const std::string& path) {
  return split_at(read_file(path), "\n__ggml_vocab_test__\n");
}

constexpr EncodeOptions kBare{.add_bos = false, .add_eos = false};

void expect_ids(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                const std::string& ids_path) {
  const auto lines = split_at(read_file(ids_path), "\n");
  ASSERT_EQ(lines.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto ids = tokenizer.encode(texts[i], false, kBare);
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(ids.value(), parse_ids(lines[i])) << "text " << i << ": " << texts[i];
  }
}

std::string decoded(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, false);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  const auto back = tokenizer.decode(ids.value());
  EXPECT_TRUE(back.ok()) << back.status().message();
  return back.value();
}

class Reference : public ::testing::TestWithParam<const char*> {};

TEST_P(Reference, GivesTheIdsOfTheModelsOwnTokenizer) {
  STRATA_REQUIRE_SHARED_DATA();
  const std::string path = shared_path(GetParam());
  const auto texts = texts_in(path + ".inp");
  ASSERT_EQ(texts.size(), 46u);
  expect_ids(*load(path), texts, path + ".out");
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Reference,
                         ::testing::Values("gpt-2", "starcoder", "deepseek-coder", "llama-spm",
                                           "bert-bge"));

class Lossless : public ::testing::TestWithParam<const char*> {};

TEST_P(Lossless, TextsRoundTrip) {
  STRATA_REQUIRE_SHARED_DATA();
  const std::string path = shared_path(GetParam());
  const auto tokenizer = load(path);
  for (const std::string& text : texts_in(path + ".inp"))
    EXPECT_EQ(decoded(*tokenizer, text), text);
}

TEST_P(Lossless, BytesThatAreNotUtf8AreKeptOrRefusedByName) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto tokenizer = load(shared_path(GetParam()));
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

INSTANTIATE_TEST_SUITE_P(Vocabularies, Lossless,
                         ::testing::Values("gpt-2", "starcoder", "deepseek-coder", "llama-spm"));

// Small vocabularies that lie here, and what testdata/refresh_vocabularies.py says of them.
std::string local_path(const std::string& name) {
  return STRATA_SOURCE_DIR "/src/text/tokenizer/testdata/" + name;
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, GivesTheIdsOfOtherImplementations) {
  const std::string name = GetParam();
  const auto texts = texts_in(local_path("texts.inp"));
  ASSERT_GT(texts.size(), 200u);
  expect_ids(*load(local_path(name + ".gguf")), texts, local_path(name + ".out"));
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Golden,
                         ::testing::Values("unigram", "unigram-bytes", "wordpiece",
                                           "wordpiece-cased", "rwkv"));

TEST(Rwkv, TextsAndOtherBytesRoundTrip) {
  const auto tokenizer = load(local_path("rwkv.gguf"));
  for (const std::string& text : texts_in(local_path("texts.inp")))
    EXPECT_EQ(decoded(*tokenizer, text), text);
  EXPECT_EQ(decoded(*tokenizer, "a\xff\xe4\xbd b"), "a\xff\xe4\xbd b");
}

TEST(Unigram, NormalTextRoundTrips) {
  for (const char* name : {"unigram.gguf", "unigram-bytes.gguf"})
    EXPECT_EQ(decoded(*load(local_path(name)), "hello world the cat"), "hello world the cat");
  // Byte tokens spell what the vocabulary lacks; without spaces merged, all of it comes back.
  EXPECT_EQ(decoded(*load(local_path("unigram-bytes.gguf")), "  \u0e01  hello "),
            "  \u0e01  hello ");
}

TEST(WordPiece, WordsComeBackBetweenSingleSpaces) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto tokenizer = load(shared_path("bert-bge"));
  EXPECT_EQ(decoded(*tokenizer, "unbelievable tokenization"), "unbelievable tokenization");
  EXPECT_EQ(decoded(*tokenizer, "  Hello,\tw\u00f6rld!"), "hello , world !");
  const auto ids = tokenizer->encode("hello", false);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids.value(), (std::vector<TokenId>{101, 7592, 102}));
}

TEST(Spm, ASpaceIsPutBeforeTextThatFollowsASpecialToken) {
  STRATA_REQUIRE_SHARED_DATA();
  const auto tokenizer = load(shared_path("llama-spm"));
  const auto ids = tokenizer->encode("<s>G", true);
  ASSERT_TRUE(ids.ok());
  ASSERT_EQ(ids.value().size(), 2u);
  EXPECT_EQ(ids.value()[0], tokenizer->special_ids().bos);
  EXPECT_EQ(tokenizer->token_text(ids.value()[1]), "\xe2\x96\x81G");
}

}  // namespace
}  // namespace strata
