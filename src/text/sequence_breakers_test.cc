#include "text/sequence_breakers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Part = BreakerPart;

TEST(SequenceBreakers, AreTheStretchesOfTheTextThatTokensWrite) {
  auto file = testing::byte_vocabulary();
  file.add_merge("a", "b");  // 256
  const TokenId whole = file.add("xabcy"), begin = file.add("xa"), end = file.add("cd");
  const TokenId twice = file.add("xabca");
  file.add("bd");
  const auto tokenizer = file.create();
  ASSERT_TRUE(tokenizer.ok());
  const auto parts = sequence_breakers(**tokenizer, {"abc"});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_THAT(*parts, ElementsAre(Part{'a', 0, 0, 1}, Part{'b', 0, 1, 2}, Part{'c', 0, 2, 0},
                                  Part{256, 0, 0, 2}, Part{whole, 0, 0, 0}, Part{begin, 0, 0, 1},
                                  Part{end, 0, 2, 0}, Part{twice, 0, 0, 0}, Part{twice, 0, 0, 1}));
}

TEST(SequenceBreakers, OfSeveralTextsAreSortedAndDistinct) {
  const auto tokenizer = testing::byte_vocabulary().create();
  ASSERT_TRUE(tokenizer.ok());
  const auto parts = sequence_breakers(**tokenizer, {":", "*", ":"});
  ASSERT_TRUE(parts.ok());
  EXPECT_THAT(*parts, ElementsAre(Part{'*', 0, 0, 0}, Part{':', 1, 0, 0}));
}

TEST(SequenceBreakers, RefuseTextsThatAreEmptyOrLong) {
  const auto tokenizer = testing::byte_vocabulary().create();
  ASSERT_TRUE(tokenizer.ok());
  for (const std::string& text : {std::string(), std::string(41, 'a')}) {
    const auto breakers = sequence_breakers(**tokenizer, {text});
    ASSERT_FALSE(breakers.ok());
    EXPECT_THAT(breakers.status().message(), HasSubstr("1 to 40"));
  }
}

}  // namespace
}  // namespace strata
