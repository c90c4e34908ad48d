// Vocabularies that contradict themselves.
#include "text/tokenizer/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

using testing::byte_vocabulary;
using ::testing::HasSubstr;
using testing::number_array;
using testing::spm_vocabulary;
using testing::VocabularyFile;

// The message of the error that the file must give.
std::string refusal(const VocabularyFile& file, StatusCode code = StatusCode::kCorrupt) {
  const auto tokenizer = file.create();
  if (tokenizer.ok()) return "accepted";
  EXPECT_EQ(tokenizer.status().code(), code) << tokenizer.status().message();
  return tokenizer.status().message();
}

VocabularyFile with(VocabularyFile file, std::string_view key, MetadataArray array) {
  file.more.emplace_back(key, MetadataEntry{ValueType::kArray, std::move(array)});
  return file;
}

TEST(Vocabulary, ArraysOfDifferentLengthsAreRefused) {
  VocabularyFile file = byte_vocabulary();
  file.scores.pop_back();
  EXPECT_THAT(refusal(file), HasSubstr("tokenizer.ggml.scores"));
  file = byte_vocabulary();
  file.kinds.push_back(1);
  EXPECT_THAT(refusal(file), HasSubstr("tokenizer.ggml.token_type"));
}

TEST(Vocabulary, ArraysOfTheWrongTypeAreRefused) {
  const std::vector<std::uint8_t> bytes(256);
  for (const std::string_view key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type",
                                     "tokenizer.ggml.tokens", "tokenizer.ggml.merges"})
    EXPECT_THAT(refusal(with(byte_vocabulary(), key, number_array(ValueType::kUint8, bytes))),
                HasSubstr(key));
}

TEST(Vocabulary, KindsAndScoresOutsideTheirRangesAreRefused) {
  for (const std::int32_t kind : {-1, 7, std::numeric_limits<std::int32_t>::max()}) {
    VocabularyFile file = byte_vocabulary();
    file.kinds[3] = kind;
    EXPECT_THAT(refusal(file), HasSubstr("tokenizer.ggml.token_type"));
  }
  for (const float score :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    VocabularyFile file = byte_vocabulary();
    file.scores[3] = score;
    EXPECT_THAT(refusal(file), HasSubstr("tokenizer.ggml.scores"));
  }
}

TEST(Vocabulary, MergesThatAreNotTwoSymbolsAreRefused) {
  for (const std::string_view line : {"", "a", " ", "a ", " a", "ab"}) {
    VocabularyFile file = byte_vocabulary();
    file.merges = {"a b", std::string(line)};
    EXPECT_THAT(refusal(file), HasSubstr("tokenizer.ggml.merges")) << line;
  }
}

TEST(Vocabulary, MergesOutsideTheByteAlphabetAreReported) {
  VocabularyFile file = byte_vocabulary();
  file.merges = {"a \u4e2d"};
  const auto tokenizer = file.create();
  ASSERT_TRUE(tokenizer.ok());
  ASSERT_EQ(tokenizer.value()->warnings().size(), 1u);
  EXPECT_THAT(tokenizer.value()->warnings()[0], HasSubstr("tokenizer.ggml.merges"));
}

TEST(Vocabulary, SpecialIdsMustBeTokens) {
  for (const std::string_view name : {"bos", "eos", "eot", "eom", "unknown"}) {
    VocabularyFile file = byte_vocabulary();
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    file.set(key, std::uint64_t{256});
    EXPECT_THAT(refusal(file), HasSubstr(key));
  }
  VocabularyFile file = byte_vocabulary();
  file.set("tokenizer.ggml.padding_token_id", std::uint64_t{256});
  file.set("tokenizer.ggml.eos_token_id", std::uint64_t{0xffffffff});
  const auto tokenizer = file.create();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer.value()->special_ids().pad, kNoToken);
  EXPECT_EQ(tokenizer.value()->special_ids().eos, kNoToken);
  ASSERT_EQ(tokenizer.value()->warnings().size(), 1u);
}

TEST(Vocabulary, ABosThatIsWantedButNotNamedIsReportedAndLeftOut) {
  VocabularyFile file = byte_vocabulary();
  file.set("tokenizer.ggml.add_bos_token", true);
  const auto tokenizer = file.create();
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_FALSE(tokenizer.value()->add_bos());
  EXPECT_EQ(tokenizer.value()->warnings().size(), 1u);
}

TEST(Vocabulary, ByteTokensMustSpellAByte) {
  for (const std::string_view text : {"<0xG0>", "<0x1>", "0x0A", "<0x-1>", "", "<0x0A>>"}) {
    VocabularyFile file = spm_vocabulary();
    file.add(text, TokenKind::kByte);
    EXPECT_THAT(refusal(file), HasSubstr("byte token")) << text;
  }
}

TEST(Vocabulary, TokensOfAbsurdLengthAreRefused) {
  VocabularyFile file = byte_vocabulary();
  file.add(std::string(5000, 'x'));
  EXPECT_THAT(refusal(file, StatusCode::kUnsupported), HasSubstr("token 256"));
}

TEST(Vocabulary, EmptyVocabulariesAreRefused) {
  EXPECT_THAT(refusal(VocabularyFile()), HasSubstr("tokenizer.ggml.tokens"));
}

TEST(Vocabulary, TheFirstOfEqualTokensIsUsedAndEmptyOnesNever) {
  VocabularyFile file = byte_vocabulary();
  file.add("a");
  file.add("");
  file.add_control("");
  file.add_user_defined("");
  const TokenId first = file.add_control("<|x|>");
  file.add_control("<|x|>");
  const auto tokenizer = file.create();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_THAT(tokenizer.value()->encode("a<|x|>", true).value(),
              ::testing::ElementsAre('a', first));
}

TEST(Vocabulary, SentencePieceNeedsScores) {
  const VocabularyFile file = spm_vocabulary();
  Metadata metadata;
  const Metadata whole = file.metadata();
  for (const std::string_view key : whole.keys())
    if (key != "tokenizer.ggml.scores") (void)metadata.insert(key, MetadataEntry(*whole.find(key)));
  const auto tokenizer = Tokenizer::create(metadata);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("tokenizer.ggml.scores"));
}

TEST(Vocabulary, OtherModelsAreRefusedByName) {
  for (const std::string_view model :
       {"plamo2", "hybriddna", "whitespace", "no_vocab", "none", "test", ""}) {
    VocabularyFile file = byte_vocabulary();
    file.model = model;
    EXPECT_THAT(refusal(file, StatusCode::kUnsupported), HasSubstr(model));
  }
}

}  // namespace
}  // namespace strata
