#include "text/sequence_breakers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<TokenId>;

TEST(SequenceBreakers, AreTheTokensThatHoldTheTextAndThoseThatBeginIt) {
  auto file = testing::byte_vocabulary();
  file.add_merge("a", "b");  // 256
  const TokenId both = file.add("xaby"), begun = file.add("xa"), twice = file.add("aca");
  const auto tokenizer = file.create();
  ASSERT_TRUE(tokenizer.ok());
  const std::vector<std::string> texts = {"ab"};
  const auto breakers = sequence_breakers(**tokenizer, texts);
  ASSERT_TRUE(breakers.ok()) << breakers.status().message();
  EXPECT_THAT(*breakers, ElementsAre(Tokens{'a', 'b'}, Tokens{256}, Tokens{both},
                                     Tokens{begun, 'b'}, Tokens{twice, 'b'}));
}

TEST(SequenceBreakers, OfSeveralTextsAreSortedAndDistinct) {
  const auto tokenizer = testing::byte_vocabulary().create();
  ASSERT_TRUE(tokenizer.ok());
  const std::vector<std::string> texts = {":", "*", ":"};
  const auto breakers = sequence_breakers(**tokenizer, texts);
  ASSERT_TRUE(breakers.ok());
  EXPECT_THAT(*breakers, ElementsAre(Tokens{'*'}, Tokens{':'}));
}

TEST(SequenceBreakers, RefuseTextsThatAreEmptyOrLong) {
  const auto tokenizer = testing::byte_vocabulary().create();
  ASSERT_TRUE(tokenizer.ok());
  for (const std::string& text : {std::string(), std::string(41, 'a')}) {
    const auto breakers = sequence_breakers(**tokenizer, {&text, 1});
    ASSERT_FALSE(breakers.ok());
    EXPECT_THAT(breakers.status().message(), HasSubstr("1 to 40"));
  }
}

}  // namespace
}  // namespace strata
