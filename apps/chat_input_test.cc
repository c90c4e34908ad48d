// What a user types: messages of several lines, parameters, sizes.
#include <gtest/gtest.h>

#include "chat_reader.h"
#include "chat_settings.h"
#include "options.h"
#include "progress.h"

namespace strata::apps {
namespace {

constexpr std::int32_t kVocabulary = 100;

TEST(MessageAssembler, TakesOneLineAsAMessage) {
  MessageAssembler assembler;
  ASSERT_TRUE(assembler.add("say \"\"\"this\"\"\""));
  const auto message = assembler.take();
  EXPECT_EQ(message.text, "say \"\"\"this\"\"\"");
  EXPECT_FALSE(message.quoted);
}

TEST(MessageAssembler, JoinsTheLinesBetweenMarks) {
  MessageAssembler assembler;
  ASSERT_FALSE(assembler.add("  \"\"\"/bye"));
  ASSERT_FALSE(assembler.add(""));
  EXPECT_TRUE(assembler.open());
  ASSERT_TRUE(assembler.add("end\"\"\""));
  const auto message = assembler.take();
  EXPECT_EQ(message.text, "/bye\n\nend");
  EXPECT_TRUE(message.quoted);
  ASSERT_TRUE(assembler.add("next"));
  EXPECT_EQ(assembler.take().text, "next");
}

TEST(MessageAssembler, OpensAndClosesInOneLine) {
  MessageAssembler assembler;
  ASSERT_TRUE(assembler.add("\"\"\"one\"\"\""));
  EXPECT_EQ(assembler.take().text, "one");
}

TEST(MessageAssembler, LetsASettingHaveSeveralLines) {
  MessageAssembler assembler;
  ASSERT_FALSE(assembler.add("/set system \"\"\"Be"));
  ASSERT_TRUE(assembler.add("brief.\"\"\""));
  const auto message = assembler.take();
  EXPECT_EQ(message.text, "/set system Be\nbrief.");
  EXPECT_FALSE(message.quoted);
}

TEST(MessageAssembler, ForgetsAnOpenTextOnReset) {
  MessageAssembler assembler;
  ASSERT_FALSE(assembler.add("\"\"\"lost"));
  assembler.reset();
  ASSERT_TRUE(assembler.add("kept"));
  EXPECT_EQ(assembler.take().text, "kept");
}

TEST(ChatSettings, SetsParametersByTheirNames) {
  ChatSettings settings;
  const std::pair<const char*, const char*> values[] = {
      {"temperature", "0.5"}, {"top_k", "7"},
      {"top-p", "0.25"},      {"seed", "18446744073709551615"},
      {"max_tokens", "12"},   {"system", "Be kind"},
      {"think", "off"},       {"hide_thinking", "on"},
      {"stop", "END"}};
  for (const auto& [name, value] : values)
    EXPECT_TRUE(settings.set(name, value, kVocabulary).ok()) << name;
  EXPECT_EQ(settings.sampling.params.temperature, 0.5f);
  EXPECT_EQ(settings.sampling.params.top_k, 7);
  EXPECT_EQ(settings.sampling.params.top_p, 0.25f);
  EXPECT_EQ(settings.sampling.params.seed, 18446744073709551615u);
  EXPECT_EQ(settings.max_tokens, 12);
  EXPECT_EQ(settings.system, "Be kind");
  EXPECT_EQ(settings.think, false);
  EXPECT_TRUE(settings.hide_thinking);
  EXPECT_EQ(settings.stops, std::vector<std::string>{"END"});
}

TEST(ChatSettings, RefusesWhatDoesNotFitAndKeepsTheValue) {
  ChatSettings settings;
  const std::pair<const char*, const char*> values[] = {
      {"temperature", "warm"}, {"temperature", "0.5x"}, {"temperature", ""}, {"temperature", "nan"},
      {"temperature", "-1"},   {"top_k", "1.5"},        {"top_p", "2"},      {"max_tokens", "0"},
      {"seed", "-1"},          {"think", "maybe"},      {"warmth", "1"},     {"mirostat", "1"},
      {"samplers", "top_q"},   {"typical_p", "1.1"},    {"dry_base", "0.5"}};
  const std::string before = settings.describe();
  for (const auto& [name, value] : values) {
    const Status status = settings.set(name, value, kVocabulary);
    EXPECT_FALSE(status.ok()) << name << ' ' << value;
  }
  EXPECT_EQ(settings.describe(), before);
}

TEST(ChatSettings, DescribesEveryParameter) {
  const std::string text = ChatSettings().describe();
  for (const char* const name : {"temperature", "top_k", "top_p", "min_p", "repeat_penalty",
                                 "repeat_last_n", "presence_penalty", "frequency_penalty", "seed",
                                 "max_tokens", "think", "hide_thinking", "system"})
    EXPECT_NE(text.find(name), std::string::npos) << name;
}

TEST(ParseSize, TakesUnitsOfPowersOfTwo) {
  EXPECT_EQ(*parse_size("123"), 123u);
  EXPECT_EQ(*parse_size("512M"), 512 * kMiB);
  EXPECT_EQ(*parse_size("1.5GiB"), kGiB + kGiB / 2);
  EXPECT_EQ(*parse_size("2k"), 2 * kKiB);
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* const text : {"", "G", "-1G", "0", "1Q", "1Gb", "4 G", "1e30G", "nan", "inf"})
    EXPECT_FALSE(parse_size(text).ok()) << text;
}

TEST(ProgressLine, FillsUpWithTheShareDone) {
  EXPECT_EQ(progress_line("x", 0, 10), "x [" + std::string(30, '.') + "]   0 %");
  EXPECT_EQ(progress_line("x", 5, 10),
            "x [" + std::string(15, '#') + std::string(15, '.') + "]  50 %");
  EXPECT_EQ(progress_line("x", 12, 10), "x [" + std::string(30, '#') + "] 100 %");
  EXPECT_EQ(progress_line("x", 0, 0), "x [" + std::string(30, '#') + "] 100 %");
}

}  // namespace
}  // namespace strata::apps
