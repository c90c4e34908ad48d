#include "text/tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

using testing::byte_vocabulary;
using testing::spm_vocabulary;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Token ids of byte_vocabulary() are the bytes.
std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

class DetokenizerTest : public ::testing::Test {
 protected:
  std::string stream(std::string_view bytes, Detokenizer::End end) {
    Detokenizer detokenizer(*tokenizer_);
    std::string text;
    for (const TokenId id : bytes_of(bytes)) text += detokenizer.push(id);
    return text + detokenizer.finish(end);
  }

  std::unique_ptr<const Tokenizer> tokenizer_ = std::move(byte_vocabulary().create()).value();
};

TEST_F(DetokenizerTest, NeverSplitsACharacter) {
  Detokenizer detokenizer(*tokenizer_);
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xf0), "");
  EXPECT_EQ(detokenizer.push(0x9f), "");
  EXPECT_EQ(detokenizer.push(0x98), "");
  EXPECT_EQ(detokenizer.held_back(), "\xf0\x9f\x98");
  EXPECT_EQ(detokenizer.push(0x8a), "\xf0\x9f\x98\x8a");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST_F(DetokenizerTest, AnAnswerCutInsideACharacterEndsBeforeIt) {
  EXPECT_EQ(stream("hi \xf0\x9f\x98", Detokenizer::End::kCut), "hi ");
}

TEST_F(DetokenizerTest, AModelThatEndsInsideACharacterMadeAnError) {
  EXPECT_EQ(stream("hi \xf0\x9f\x98", Detokenizer::End::kComplete),
            std::string("hi ").append(kReplacement));
}

TEST_F(DetokenizerTest, BytesThatCannotBecomeValidAreReplacedAtOnce) {
  for (const std::string_view bytes :
       {"\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    std::string expected;
    for (std::size_t i = 0; i < bytes.size(); ++i) expected += kReplacement;
    EXPECT_EQ(stream(bytes, Detokenizer::End::kCut), expected);
    EXPECT_EQ(stream(std::string(bytes) + "ok", Detokenizer::End::kCut), expected + "ok");
  }
}

TEST_F(DetokenizerTest, AnAbandonedCharacterIsOneReplacementAndTheNextOneSurvives) {
  EXPECT_EQ(stream("\xf0\x9f\x98!", Detokenizer::End::kCut), std::string(kReplacement) + "!");
  EXPECT_EQ(stream("\xe2\x96\xc3\xbc", Detokenizer::End::kCut),
            std::string(kReplacement) + "\xc3\xbc");
}

TEST_F(DetokenizerTest, IdsOutsideTheVocabularyStandForNothing) {
  Detokenizer detokenizer(*tokenizer_);
  EXPECT_EQ(detokenizer.push(-1), "");
  EXPECT_EQ(detokenizer.push(100000), "");
  EXPECT_EQ(detokenizer.push('a'), "a");
}

TEST(Detokenizer, ControlTokensAreSilentUnlessAskedFor) {
  auto file = byte_vocabulary();
  const TokenId end = file.add_control("<|im_end|>");
  const auto tokenizer = std::move(file.create()).value();
  EXPECT_EQ(Detokenizer(*tokenizer).push(end), "");
  EXPECT_EQ(Detokenizer(*tokenizer, {.include_special = true}).push(end), "<|im_end|>");
}

TEST(Detokenizer, AContinuationKeepsItsFirstSpaceAndAWholeTextDoesNot) {
  auto file = spm_vocabulary();
  const TokenId word = file.add("\xe2\x96\x81hi");
  const auto tokenizer = std::move(file.create()).value();
  EXPECT_EQ(Detokenizer(*tokenizer).push(word), " hi");
  Detokenizer whole(*tokenizer, {.strip_space_prefix = true});
  EXPECT_EQ(whole.push(tokenizer->special_ids().bos), "");
  EXPECT_EQ(whole.push(word), "hi");
  EXPECT_EQ(whole.push(word), " hi");
}

}  // namespace
}  // namespace strata
