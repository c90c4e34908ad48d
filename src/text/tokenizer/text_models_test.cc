// WordPiece, Unigram and RWKV vocabularies: their rules, and what hostile ones must not do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/processor_time.h"
#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

using testing::charsmap;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::rwkv_vocabulary;
using testing::unigram_vocabulary;
using testing::VocabularyFile;
using testing::wordpiece_vocabulary;

constexpr EncodeOptions kNothingAdded{.add_bos = false, .add_eos = false};

std::unique_ptr<const Tokenizer> tokenizer_of(const VocabularyFile& file) {
  auto tokenizer = file.create();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

std::vector<std::string> texts(const VocabularyFile& file, std::string_view text,
                               bool parse_special = false, EncodeOptions options = kNothingAdded) {
  const auto tokenizer = tokenizer_of(file);
  const auto ids = tokenizer->encode(text, parse_special, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  std::vector<std::string> out;
  for (const TokenId id : ids.value()) out.emplace_back(tokenizer->token_text(id));
  return out;
}

TEST(WordPiece, TakesTheLongestTokenFromTheLeft) {
  VocabularyFile file = wordpiece_vocabulary();
  file.add(
      "\xe2\x96\x81"
      "ab");
  file.add("bcd");
  EXPECT_THAT(texts(file, "abcd"), ElementsAre("\xe2\x96\x81"
                                               "ab",
                                               "c", "d"));
  EXPECT_THAT(texts(file, "bcd"), ElementsAre("\xe2\x96\x81"
                                              "b",
                                              "c", "d"));
  EXPECT_THAT(texts(file, "cbcd"), ElementsAre("\xe2\x96\x81"
                                               "c",
                                               "bcd"));
}

TEST(WordPiece, AWordThatTokensDoNotCoverIsUnknownAsAWhole) {
  EXPECT_THAT(texts(wordpiece_vocabulary(), "ab abx a"), ElementsAre("\xe2\x96\x81"
                                                                     "a",
                                                                     "b", "[UNK]",
                                                                     "\xe2\x96\x81"
                                                                     "a"));
  EXPECT_EQ(texts(wordpiece_vocabulary(), std::string(100, 'a')).size(), 100u);
  EXPECT_THAT(texts(wordpiece_vocabulary(), std::string(101, 'a')), ElementsAre("[UNK]"));
}

TEST(WordPiece, TheSpaceOfTheFilesSpellingIsNoSpaceInText) {
  EXPECT_THAT(texts(wordpiece_vocabulary(),
                    "b\xe2\x96\x81"
                    "a"),
              ElementsAre("[UNK]"));
}

TEST(WordPiece, ControlTokensStandAroundATextAndAreRecognisedWhereTrusted) {
  const VocabularyFile file = wordpiece_vocabulary();
  EXPECT_THAT(texts(file, "a", false, {}), ElementsAre("[CLS]",
                                                       "\xe2\x96\x81"
                                                       "a",
                                                       "[SEP]"));
  EXPECT_THAT(texts(file, "a[MASK]b", true), ElementsAre("\xe2\x96\x81"
                                                         "a",
                                                         "[MASK]",
                                                         "\xe2\x96\x81"
                                                         "b"));
  EXPECT_THAT(texts(file, "[MASK]", false), ElementsAre("[UNK]", "[UNK]", "[UNK]"));
  EXPECT_EQ(tokenizer_of(file)->special_ids().bos, 2);
}

TEST(WordPiece, WithoutAnUnknownTokenTextMayBeRefused) {
  VocabularyFile file;
  file.model = "bert";
  file.add(
      "\xe2\x96\x81"
      "a");
  const auto tokenizer = tokenizer_of(file);
  EXPECT_THAT(tokenizer->encode("a", false).value(), ElementsAre(0));
  const auto ids = tokenizer->encode("b", false);
  ASSERT_FALSE(ids.ok());
  EXPECT_THAT(ids.status().message(), HasSubstr("`b`"));
}

VocabularyFile scored(std::initializer_list<std::pair<const char*, float>> tokens) {
  VocabularyFile file = unigram_vocabulary();
  for (const auto& [text, score] : tokens) file.add(text, TokenKind::kNormal, score);
  return file;
}

TEST(Unigram, TakesTheGreatestSumOfScores) {
  EXPECT_THAT(texts(scored({{"a", -2}, {"b", -2}, {"ab", -5}}), "ab"),
              ElementsAre("\xe2\x96\x81", "a", "b"));
  EXPECT_THAT(texts(scored({{"a", -2}, {"b", -4}, {"ab", -5}}), "ab"),
              ElementsAre("\xe2\x96\x81", "ab"));
  // Of equal sums, the one whose last token is longest.
  EXPECT_THAT(texts(scored({{"a", -2}, {"b", -2}, {"ab", -4}}), "ab"),
              ElementsAre("\xe2\x96\x81", "ab"));
}

TEST(Unigram, UnknownCharactersInARowAreOneToken) {
  const VocabularyFile file = scored({{"a", -2}});
  EXPECT_THAT(texts(file, "a\u4e2d\u6587xa"), ElementsAre("\xe2\x96\x81", "a", "<unk>", "a"));
  VocabularyFile no_space = file;
  no_space.texts[3] = "b";
  EXPECT_THAT(texts(no_space, "x y  z a"), ElementsAre("<unk>", "a"));
}

TEST(Unigram, SpacesAreMergedAndPutInFrontAsTheFileSays) {
  VocabularyFile file = scored({{"a", -2}});
  EXPECT_THAT(texts(file, "  a   a "), ElementsAre("\xe2\x96\x81", "a", "\xe2\x96\x81", "a"));
  EXPECT_THAT(texts(file, "   "), IsEmpty());
  file.more[1].second.value = false;
  EXPECT_THAT(texts(file, "a  "), ElementsAre("\xe2\x96\x81", "a", "\xe2\x96\x81", "\xe2\x96\x81"));
  file.more[0].second.value = false;
  EXPECT_THAT(texts(file, "a "), ElementsAre("a", "\xe2\x96\x81"));
}

TEST(Unigram, ControlTokensAreRecognisedWhereTrustedOnly) {
  const VocabularyFile file = scored({{"a", -2}, {"<", -3}, {"/", -3}, {"s", -3}, {">", -3}});
  EXPECT_THAT(texts(file, "a</s>", true, {}), ElementsAre("\xe2\x96\x81", "a", "</s>"));
  EXPECT_THAT(texts(file, "</s>", false), ElementsAre("\xe2\x96\x81", "<", "/", "s", ">"));
}

VocabularyFile with_rules(VocabularyFile file, const MetadataArray& rules) {
  file.more.emplace_back("tokenizer.ggml.precompiled_charsmap",
                         MetadataEntry{ValueType::kArray, rules});
  return file;
}

// Units in which every byte but zero leads to a value, at `replacement`.
std::vector<std::uint32_t> rules_for_all_bytes(std::uint32_t replacement) {
  std::vector<std::uint32_t> units(512);
  units[0] = 256u << 10;
  units[256] = 1u << 31 | replacement;
  for (std::uint32_t byte = 1; byte < 256; ++byte) units[256 ^ byte] = byte << 10 | 1u << 8 | byte;
  return units;
}

TEST(Unigram, RulesReplaceTextBeforeItIsTokenized) {
  const VocabularyFile file =
      with_rules(scored({{"a", -2}}), charsmap(rules_for_all_bytes(2), std::string("x\0", 2)));
  EXPECT_FALSE(tokenizer_of(file)->encode("b", false).ok());  // the replacement lies outside
  EXPECT_THAT(texts(with_rules(scored({{"a", -2}}),
                               charsmap(rules_for_all_bytes(0), std::string("a a\0", 4))),
                    "b"),
              ElementsAre("\xe2\x96\x81", "a", "\xe2\x96\x81", "a"));
}

TEST(Unigram, BrokenRulesAreRefusedByKey) {
  const auto refused = with_rules(unigram_vocabulary(), charsmap({}, "")).create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kCorrupt);
  EXPECT_THAT(refused.status().message(), HasSubstr("precompiled_charsmap"));
}

TEST(Unigram, RulesThatBlowTextUpMeetALimit) {
  const std::string grown = std::string(1000, 'a') + '\0';
  const auto tokenizer =
      tokenizer_of(with_rules(scored({{"a", -2}}), charsmap(rules_for_all_bytes(0), grown)));
  const auto ids = tokenizer->encode("b", false);
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().code(), StatusCode::kResourceExhausted);
}

TEST(Unigram, ScoresAreRequired) {
  VocabularyFile file = unigram_vocabulary();
  file.more.emplace_back("tokenizer.ggml.scores", MetadataEntry{ValueType::kBool, true});
  const auto tokenizer = file.create();
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("tokenizer.ggml.scores"));
}

TEST(Rwkv, TakesTheLongestTokenOfEscapedBytes) {
  VocabularyFile file = rwkv_vocabulary();
  file.add("ab\\n");
  file.add("a\\\\");
  file.add("\\xe4\\xbd");
  const auto tokenizer = tokenizer_of(file);
  EXPECT_THAT(texts(file, "ab\nab"), ElementsAre("ab\\n", "\\x61", "\\x62"));
  EXPECT_THAT(texts(file, "a\\n"), ElementsAre("a\\\\", "\\x6e"));
  EXPECT_THAT(texts(file, "\u4f60"), ElementsAre("\\xe4\\xbd", "\\xa0"));
  EXPECT_THAT(texts(file, "<s>", true), ElementsAre("<s>"));
  EXPECT_EQ(texts(file, "<s>", false).size(), 3u);
}

TEST(Rwkv, BrokenEscapesAreRefusedByToken) {
  for (const std::string_view text : {"\\", "a\\", "\\x", "\\x4", "\\xg0", "\\x+1", "\\q"}) {
    VocabularyFile file = rwkv_vocabulary();
    file.add(text);
    const auto tokenizer = file.create();
    ASSERT_FALSE(tokenizer.ok()) << text;
    EXPECT_EQ(tokenizer.status().code(), StatusCode::kCorrupt);
    EXPECT_THAT(tokenizer.status().message(), HasSubstr("token 257"));
  }
}

TEST(Rwkv, ABytesWithoutATokenIsNamed) {
  VocabularyFile file;
  file.model = "rwkv";
  file.add("a");
  const auto ids = tokenizer_of(file)->encode("ab", false);
  ASSERT_FALSE(ids.ok());
  EXPECT_THAT(ids.status().message(), HasSubstr("`b`"));
}

TEST(Tokenizer, KindsHaveNames) {
  for (const char* model : {"gpt2", "gemma4", "llama", "t5", "bert", "rwkv"})
    EXPECT_NE(tokenizer_kind(model), "") << model;
  EXPECT_EQ(tokenizer_kind("plamo2"), "");
}

// Tokens that are runs of every length tempt each model to look at the same bytes again.
std::vector<VocabularyFile> tempting_vocabularies() {
  std::vector<VocabularyFile> files = {unigram_vocabulary(), wordpiece_vocabulary(),
                                       rwkv_vocabulary()};
  for (VocabularyFile& file : files)
    for (const std::string_view unit : {"a", "\xe2\x96\x81", "!"})
      for (std::string run(unit); run.size() < 40; run += unit)
        file.add(run, TokenKind::kNormal, -static_cast<float>(run.size()));
  return files;
}

TEST(TextModels, LongRunsTakeLinearTime) {
  const testing::ProcessorTime time;
  for (const VocabularyFile& file : tempting_vocabularies()) {
    const auto tokenizer = tokenizer_of(file);
    for (const std::string_view unit : {"a", " ", "\n", "!", "\xff", "\u4e2d", "\u0301", "a "})
      for (const std::string_view end : {"", "b"}) {
        std::string text;
        while (text.size() < (STRATA_SLOW ? 1 << 16 : 1 << 20)) text += unit;
        const auto ids = tokenizer->encode(text.append(end), false);
        ASSERT_TRUE(ids.ok()) << ids.status().message();
      }
  }
  EXPECT_LT(time.seconds(), 120.0);
}

TEST(TextModels, AMillionTokensAreRead) {
  constexpr int kTokens = STRATA_SLOW ? 200'000 : 1'000'000;
  const testing::ProcessorTime time;
  for (VocabularyFile file : {unigram_vocabulary(), wordpiece_vocabulary(), rwkv_vocabulary()}) {
    const std::size_t before = file.texts.size();
    for (int i = 0; i < kTokens; ++i) file.add(fmt::format("a{}", i), TokenKind::kNormal, -1);
    const auto tokenizer = tokenizer_of(file);
    const auto ids = tokenizer->encode(fmt::format("a{}", kTokens - 1), false, kNothingAdded);
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    if (file.model == "bert") continue;  // there it does not start a word
    EXPECT_EQ(ids.value().back(), static_cast<TokenId>(before) + kTokens - 1) << file.model;
  }
  EXPECT_LT(time.seconds(), 120.0);
}

}  // namespace
}  // namespace strata
