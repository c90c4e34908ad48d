#include "text_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer/test_support.h"

namespace strata::apps {
namespace {

using strata::testing::VocabularyFile;
using ::testing::ElementsAre;

Result<std::vector<TokenId>> encode(const VocabularyFile& file, std::string_view text) {
  const auto tokenizer = file.create();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return encode_pair(**tokenizer, file.metadata(), text);
}

VocabularyFile roberta() {
  VocabularyFile file = strata::testing::unigram_vocabulary();
  file.add(
      "\xe2\x96\x81"
      "a",
      TokenKind::kNormal, -1);
  file.add(
      "\xe2\x96\x81"
      "b",
      TokenKind::kNormal, -1);
  file.set("tokenizer.ggml.bos_token_id", std::uint64_t{0});
  file.set("tokenizer.ggml.add_bos_token", true);
  return file;
}

TEST(Pair, HasOneBorderInWordPieceVocabularies) {
  const auto file = strata::testing::wordpiece_vocabulary();
  EXPECT_THAT(*encode(file, "a\tb"), ElementsAre(2, 5, 3, 7, 3));
  EXPECT_THAT(*encode(file, "a\t"), ElementsAre(2, 5, 3, 3));
}

TEST(Pair, HasTwoBordersInRobertasVocabularies) {
  EXPECT_THAT(*encode(roberta(), "a\tb"), ElementsAre(0, 4, 1, 1, 5, 1));
}

TEST(Pair, IsCutAtItsFirstTab) {
  EXPECT_THAT(*encode(strata::testing::wordpiece_vocabulary(), "a\tb\tb"),
              ElementsAre(2, 5, 3, 7, 7, 3));
}

TEST(Pair, IsRefusedWithoutBorder) {
  EXPECT_NE(encode(roberta(), "a b").status().message().find("tab"), std::string::npos);
  VocabularyFile endless = roberta();
  endless.set("tokenizer.ggml.add_eos_token", false);
  EXPECT_NE(encode(endless, "a\tb").status().message().find("that ends one"), std::string::npos);
}

}  // namespace
}  // namespace strata::apps
