#include "sampling_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sample/repetition.h"
#include "text/tokenizer/test_support.h"

namespace strata::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Origin = SamplingSettings::Origin;

constexpr std::int32_t kVocabulary = 300;

// Parses a command line of sampling options; the error's message or nothing.
std::string parse(SamplingSettings& settings, std::vector<std::string> arguments) {
  CLI::App app;
  add_sampling_options(app, settings);
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

void add(Metadata& metadata, std::string_view key, double value) {
  ASSERT_TRUE(metadata.insert(key, {ValueType::kFloat32, value}).ok());
}

TEST(SamplingOptions, EveryNumberHasOne) {
  for (const SamplingField& field : sampling_fields()) {
    std::string option = "--" + std::string(field.name);
    std::ranges::replace(option, '_', '-');
    SamplingSettings settings;
    EXPECT_EQ(parse(settings, {option, "2"}), "");
    std::visit(
        [&](auto member) { EXPECT_EQ(static_cast<double>(settings.params.*member), 2) << option; },
        field.member);
    EXPECT_EQ(settings.origins.at(std::string(field.name)), Origin::kOption);
    EXPECT_THAT(parse(settings, {option, "much"}), HasSubstr("no fitting number"));
  }
}

TEST(SamplingOptions, OrderBreakersAndBiasAreRead) {
  SamplingSettings settings;
  EXPECT_EQ(parse(settings, {"--samplers", "top-k;temp", "--dry-breaker", "\\n", "--dry-breaker",
                             "a\\\\n", "--logit-bias", "3=-inf", "--greedy"}),
            "");
  EXPECT_EQ(to_string(settings.params.order), "top_k;temperature");
  EXPECT_THAT(settings.dry_breakers, ElementsAre("\n", "a\\n"));
  ASSERT_EQ(settings.params.logit_bias.size(), 1u);
  EXPECT_TRUE(settings.params.greedy());
  EXPECT_THAT(parse(settings, {"--samplers", "top_z"}), HasSubstr("top_z"));
  for (const char* const bias : {"3", "3=", "=1", "3=1x", "x=1"})
    EXPECT_THAT(parse(settings, {"--logit-bias", bias}), HasSubstr("ID=VALUE")) << bias;
}

TEST(SamplingFromFile, TakesEveryKeyThatFilesHaveButForOptions) {
  Metadata metadata;
  add(metadata, "general.sampling.temp", 0.25);
  add(metadata, "general.sampling.top_k", 7);
  add(metadata, "general.sampling.top_p", 0.5);
  add(metadata, "general.sampling.min_p", 0.125);
  add(metadata, "general.sampling.xtc_probability", 0.75);
  add(metadata, "general.sampling.xtc_threshold", 0.0625);
  add(metadata, "general.sampling.penalty_last_n", -1);
  add(metadata, "general.sampling.penalty_repeat", 1.5);
  add(metadata, "general.sampling.mirostat", 2);
  add(metadata, "general.sampling.mirostat_tau", 3);
  add(metadata, "general.sampling.mirostat_eta", 0.25);
  ASSERT_TRUE(metadata
                  .insert("general.sampling.sequence",
                          {ValueType::kString, std::string_view("penalties;top_k;temp")})
                  .ok());
  SamplingSettings settings;
  EXPECT_EQ(parse(settings, {"--top-p", "0.9"}), "");
  EXPECT_THAT(settings.take_from_file(metadata, kVocabulary), ElementsAre());
  const SamplingParams& params = settings.params;
  EXPECT_EQ(params.temperature, 0.25f);
  EXPECT_EQ(params.top_k, 7);
  EXPECT_EQ(params.top_p, 0.9f);
  EXPECT_EQ(params.min_p, 0.125f);
  EXPECT_EQ(params.xtc_probability, 0.75f);
  EXPECT_EQ(params.xtc_threshold, 0.0625f);
  EXPECT_EQ(params.repeat_last_n, -1);
  EXPECT_EQ(params.repeat_penalty, 1.5f);
  EXPECT_EQ(params.mirostat, 2);
  EXPECT_EQ(params.mirostat_tau, 3);
  EXPECT_EQ(params.mirostat_eta, 0.25f);
  EXPECT_EQ(to_string(params.order), "penalties;top_k;temperature");
  const std::string shown = settings.describe();
  EXPECT_THAT(shown, HasSubstr("top_p              0.9  (option)"));
  EXPECT_THAT(shown, HasSubstr("top_k              7  (from the file)"));
  EXPECT_THAT(shown, HasSubstr("typical_p          1\n"));
}

TEST(SamplingFromFile, WhatDoesNotFitHasNoEffectAndIsSaid) {
  Metadata metadata;
  add(metadata, "general.sampling.top_p", 3);
  add(metadata, "general.sampling.top_k", 1e20);
  add(metadata, "general.sampling.min_p", std::nan(""));
  add(metadata, "general.sampling.mirostat", 1);
  add(metadata, "general.sampling.warmth", 1);
  add(metadata, "general.sampling.seed", 1);
  ASSERT_TRUE(
      metadata.insert("general.sampling.temp", {ValueType::kString, std::string_view("hot")}).ok());
  add(metadata, "general.sampling.sequence", 1);
  SamplingSettings settings;
  const auto notes = settings.take_from_file(metadata, kVocabulary);
  ASSERT_EQ(notes.size(), 8u);
  EXPECT_THAT(notes[0], HasSubstr("general.sampling.top_p"));
  EXPECT_THAT(notes[0], HasSubstr("between"));
  EXPECT_EQ(settings.describe(), SamplingSettings().describe());
}

TEST(SamplingSettings, ResolveTurnsBreakersIntoTokensWhereDryIsOn) {
  const auto tokenizer = testing::byte_vocabulary().create();
  ASSERT_TRUE(tokenizer.ok());
  SamplingSettings settings;
  EXPECT_TRUE(settings.resolve(**tokenizer)->dry_breakers.empty());
  ASSERT_TRUE(settings.assign("dry_multiplier", "0.8", Origin::kChat).ok());
  EXPECT_THAT(settings.resolve(**tokenizer)->dry_breakers,
              ElementsAre(BreakerPart{'\n', 0}, BreakerPart{'"', 1}, BreakerPart{'*', 2},
                          BreakerPart{':', 3}));
  ASSERT_TRUE(settings.assign("dry_breakers", "none", Origin::kChat).ok());
  EXPECT_TRUE(settings.resolve(**tokenizer)->dry_breakers.empty());
  ASSERT_TRUE(settings.assign("top_p", "2", Origin::kChat).ok());
  EXPECT_FALSE(settings.resolve(**tokenizer).ok());
}

// SentencePiece's tokens write the end of a breaker otherwise where it stands alone.
TEST(SamplingSettings, BreakersAreFoundInTheTextOfSentencePieceTokens) {
  testing::VocabularyFile file;
  file.model = "llama";
  file.add("<unk>", TokenKind::kUnknown);
  file.add_control("<s>");
  file.add_control("</s>");
  std::vector<TokenId> history;
  for (const std::string_view text : {"\u2581the", "\u2581q", "User", ":\u2581", "b", "\u2581:"})
    history.push_back(file.add(text));
  history.insert(history.end(), history.begin(), history.end() - 1);
  const auto tokenizer = file.create();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto finds = [&](std::string_view breaker) {
    SamplingSettings settings;
    settings.params.dry_multiplier = 1;
    settings.dry_breakers = {std::string(breaker)};
    const auto params = settings.resolve(**tokenizer);
    EXPECT_TRUE(params.ok()) << params.status().message();
    RepetitionFinder finder;
    return finder.find(history, 5, params->dry_breakers).empty();
  };
  for (const std::string_view breaker : {"er:", " qUser:", "User: b", "e q", "r: b"})
    EXPECT_TRUE(finds(breaker)) << breaker;
  for (const std::string_view breaker : {"er :", "User:  ", "eUser", "bq"})
    EXPECT_FALSE(finds(breaker)) << breaker;
}

}  // namespace
}  // namespace strata::apps
