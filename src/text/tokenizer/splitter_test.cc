#include "text/tokenizer/splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/processor_time.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> split(std::string_view rules, std::string_view text) {
  const auto splitter = Splitter::create(find_pre_tokenizer(rules)->stages);
  EXPECT_TRUE(splitter.ok()) << splitter.status().message();
  std::vector<std::string_view> pieces;
  const Status status = splitter.value().split(text, pieces);
  EXPECT_TRUE(status.ok()) << status.message();
  return {pieces.begin(), pieces.end()};
}

TEST(PreTokenizers, NamesAreUniqueAndUnknownOnesAreNotFound) {
  const auto names = pre_tokenizer_names();
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
  for (const std::string_view name : names) EXPECT_NE(find_pre_tokenizer(name), nullptr) << name;
  EXPECT_EQ(find_pre_tokenizer("nobody-has-this"), nullptr);
  EXPECT_EQ(find_pre_tokenizer(""), nullptr);
}

// Every name that files in the field have, and the rules it stands for.
constexpr std::pair<std::string_view, std::string_view> kFamilies[] = {
    {"default", "default"},
    {"llama3", "llama3"},
    {"llama-v3", "llama3"},
    {"llama-bpe", "llama3"},
    {"falcon3", "llama3"},
    {"falcon-h1", "llama3"},
    {"pixtral", "llama3"},
    {"midm-2.0", "llama3"},
    {"lfm2", "llama3"},
    {"jina-v5-nano", "llama3"},
    {"dbrx", "llama3, all merged"},
    {"smaug-bpe", "llama3, all merged"},
    {"chatglm-bpe", "llama3, all merged"},
    {"glm4", "glm4"},
    {"glm5", "glm4"},
    {"jais-2", "jais-2"},
    {"minicpm5", "minicpm5"},
    {"deepseek-llm", "deepseek-llm"},
    {"deepseek-coder", "deepseek-coder"},
    {"deepseek-v3", "deepseek-v3"},
    {"hunyuan-dense", "deepseek-v3"},
    {"joyai-llm", "deepseek-v3"},
    {"hy_v4", "deepseek-v3"},
    {"spark2_5", "spark2_5"},
    {"afmoe", "afmoe"},
    {"youtu", "youtu"},
    {"falcon", "falcon"},
    {"starcoder", "starcoder"},
    {"refact", "starcoder"},
    {"command-r", "starcoder"},
    {"smollm", "starcoder"},
    {"codeshell", "starcoder"},
    {"exaone", "starcoder"},
    {"minerva-7b", "starcoder"},
    {"mellum2", "starcoder"},
    {"gpt-2", "gpt-2"},
    {"phi-2", "gpt-2"},
    {"mpt", "gpt-2"},
    {"olmo", "gpt-2"},
    {"jais", "gpt-2"},
    {"trillion", "gpt-2"},
    {"granite-docling", "gpt-2"},
    {"exaone4", "gpt-2"},
    {"gigachat", "gpt-2"},
    {"a.x-4.0", "gpt-2"},
    {"mellum", "gpt-2"},
    {"modern-bert", "gpt-2"},
    {"roberta-bpe", "gpt-2"},
    {"jina-es", "gpt-2"},
    {"jina-de", "gpt-2"},
    {"jina-v1-en", "gpt-2"},
    {"jina-v2-es", "gpt-2"},
    {"jina-v2-de", "gpt-2"},
    {"jina-v2-code", "gpt-2"},
    {"stablelm2", "qwen2"},
    {"qwen2", "qwen2"},
    {"deepseek-r1-qwen", "qwen2"},
    {"kormo", "qwen2"},
    {"f2llmv2", "qwen2"},
    {"megrez", "qwen2"},
    {"hunyuan", "qwen2"},
    {"solar-open", "qwen2"},
    {"grok-2", "qwen2"},
    {"qwen35", "qwen35"},
    {"ufakzeka", "ufakzeka"},
    {"laguna", "laguna"},
    {"seed-coder", "seed-coder"},
    {"bailingmoe", "bailingmoe"},
    {"bailingmoe2", "bailingmoe"},
    {"llada-moe", "bailingmoe"},
    {"exaone-moe", "exaone-moe"},
    {"gpt-4o", "gpt-4o"},
    {"llama4", "gpt-4o"},
    {"kanana2", "gpt-4o"},
    {"talkie", "gpt-4o"},
    {"minimax-m2", "gpt-4o"},
    {"granite-embed-multi-97m", "granite-embed-multi"},
    {"tiny_aya", "tiny_aya"},
    {"cohere2moe", "tiny_aya"},
    {"tekken", "tekken"},
    {"kimi-k2", "kimi-k2"},
    {"superbpe", "superbpe"},
    {"poro-chat", "poro"},
    {"bloom", "poro"},
    {"gpt3-finnish", "poro"},
    {"viking", "viking"},
    {"chameleon", "chameleon"},
    {"gemma4", "gemma4"},
    {"granite-embed-multi-311m", "gemma4"},
    {"sarvam-moe", "sarvam-moe"},
    {"whitespace", "whitespace"},
};

TEST(PreTokenizers, EveryKnownNameHasItsRules) {
  EXPECT_EQ(std::size(kFamilies), pre_tokenizer_names().size());
  for (const auto& [name, family] : kFamilies) {
    const PreTokenizer* rules = find_pre_tokenizer(name);
    ASSERT_NE(rules, nullptr) << name;
    EXPECT_EQ(rules->name, family) << name;
    EXPECT_TRUE(Splitter::create(rules->stages).ok()) << name;
  }
}

TEST(Splitter, Gpt2KeepsContractionsAndTheSpaceBeforeWords) {
  EXPECT_THAT(split("gpt-2", "I'll say  hi, 42 times\n\n now"),
              ElementsAre("I", "'ll", " say", " ", " hi", ",", " 42", " times", "\n\n", " now"));
}

TEST(Splitter, StarcoderIsolatesDigits) {
  EXPECT_THAT(split("starcoder", "x = 123"), ElementsAre("x", " =", " ", "1", "2", "3"));
}

TEST(Splitter, Llama3GroupsThreeDigitsFromTheLeftAndIgnoresCase) {
  EXPECT_THAT(split("llama-bpe", "HE'LL 12345 (ok)\r\n x"),
              ElementsAre("HE", "'LL", " ", "123", "45", " (", "ok", ")\r\n", " x"));
}

TEST(Splitter, Qwen2IsolatesDigits) {
  EXPECT_THAT(split("qwen2", "a12"), ElementsAre("a", "1", "2"));
}

TEST(Splitter, Qwen35KeepsMarksWithTheirLetters) {
  EXPECT_THAT(split("qwen2", "e\u0301a"), ElementsAre("e", "\u0301a"));
  EXPECT_THAT(split("qwen35", "e\u0301a"), ElementsAre("e\u0301a"));
}

TEST(Splitter, Gpt4oCutsWhereCaseTurnsAndKeepsContractions) {
  EXPECT_THAT(split("gpt-4o", "camelCaseWORD Don't a/b"),
              ElementsAre("camel", "Case", "WORD", " Don't", " a", "/b"));
  EXPECT_THAT(split("tekken", "HTTPServer 12"), ElementsAre("HTTPServer", " ", "1", "2"));
}

TEST(Splitter, DeepSeek3SplitsNumbersThenIdeographsThenWords) {
  EXPECT_THAT(split("deepseek-v3", "v1234 中文abc _x"),
              ElementsAre("v", "123", "4", " ", "中文", "abc", " _", "x"));
}

TEST(Splitter, KimiSeparatesHanFromOtherLetters) {
  EXPECT_THAT(split("kimi-k2", "abc中文def're"), ElementsAre("abc", "中文", "def're"));
}

TEST(Splitter, JaisCutsBlanksIntoPowersOfTwo) {
  EXPECT_THAT(split("jais-2", "a        b"), ElementsAre("a", "    ", "  ", " ", " b"));
  EXPECT_THAT(split("jais-2", "\n\n\n b"), ElementsAre("\n\n\n", " b"));
}

TEST(Splitter, DigitGroupsAreCountedFromTheRight) {
  EXPECT_THAT(split("tiny_aya", "1234567"), ElementsAre("1", "234", "567"));
  EXPECT_THAT(split("tiny_aya", "1234 x"), ElementsAre("1", "234", " x"));
  EXPECT_THAT(split("tiny_aya", "1234x"), ElementsAre("123", "4", "x"));  // no word boundary
  EXPECT_THAT(split("superbpe", "a 123456"), ElementsAre("a ", "123", "456"));
  EXPECT_THAT(split("afmoe", "\u0661\u0662\u0663\u0664"),
              ElementsAre("\u0661", "\u0662\u0663\u0664"));
}

TEST(Splitter, WhiteSpaceIsUnicodes) {
  // The Mongolian vowel separator lost that property long ago; NBSP and U+3000 have it.
  EXPECT_THAT(split("whitespace", "a\u180eb\u00a0c\u3000d\u0085e"),
              ElementsAre("a\u180eb", "\u00a0", "c", "\u3000", "d", "\u0085", "e"));
}

TEST(Splitter, BytesThatAreNotUtf8BecomePiecesOfTheirOwn) {
  EXPECT_THAT(split("gpt-2", "ab\xff\xfe c\xe2\x96"),
              ElementsAre("ab", "\xff\xfe", " c", "\xe2\x96"));
  EXPECT_THAT(split("gpt-2", ""), ElementsAre());
}

// Long stretches that have tempted patterns into backtracking, and what may come after them.
std::vector<std::string> long_texts(std::size_t bytes) {
  std::vector<std::string> texts;
  for (const std::string_view unit : {" ", "\n", "\t", "\r\n", "a", "A", "7", "!", "中", "\u0301",
                                      "\u05d0", "\u0661", "a ", "A.", " \n", "'", "x\u0301"})
    for (const std::string_view end : {"", "x", "7", "中"}) {
      std::string text;
      while (text.size() < bytes) text += unit;
      texts.push_back(text.append(end));
    }
  return texts;
}

class EveryRule : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EveryRule, PiecesAreTheWholeTextAndLongRunsTakeLinearTime) {
  const auto splitter = Splitter::create(find_pre_tokenizer(GetParam())->stages);
  ASSERT_TRUE(splitter.ok()) << splitter.status().message();
  const testing::ProcessorTime time;
  for (const std::string& text : long_texts(64 * 1024)) {
    std::vector<std::string_view> pieces;
    const Status status = splitter.value().split(text, pieces);
    ASSERT_TRUE(status.ok()) << status.message();
    std::size_t at = 0;
    for (const std::string_view piece : pieces) {
      ASSERT_FALSE(piece.empty());
      ASSERT_EQ(piece.data(), text.data() + at);
      at += piece.size();
    }
    ASSERT_EQ(at, text.size());
  }
  // Quadratic rules would need minutes.
  EXPECT_LT(time.seconds(), 60.0);
}

// One name for each list of stages.
std::vector<std::string_view> distinct_rules() {
  std::set<const SplitStage*> seen;
  std::vector<std::string_view> names;
  for (const std::string_view name : pre_tokenizer_names())
    if (seen.insert(find_pre_tokenizer(name)->stages.data()).second) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Names, EveryRule, ::testing::ValuesIn(distinct_rules()));

TEST(Splitter, TwentyMegabytesOfSpacesAreSplit) {
  const std::string blanks(20 << 20, ' ');
  EXPECT_EQ(split("llama-bpe", blanks).size(), 1u);
  EXPECT_EQ(split("gpt-2", blanks + "x").size(), 2u);
}

}  // namespace
}  // namespace strata
