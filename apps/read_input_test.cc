#include "read_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ReadInput, StopsAtTheLimitOfWhatDoesNotEnd) {
  EXPECT_THAT(read_whole("/dev/zero", 1000).status().message(),
              HasSubstr("/dev/zero has more than 1000 bytes"));
  EXPECT_EQ(read_whole("/dev/null", 0)->size(), 0u);
}

TEST(ReadInput, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(read_whole("/nowhere").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(read_whole("/").status().message(), HasSubstr("cannot read /: Is a directory"));
}

TEST(ReadInput, LinesLoseTheirEnds) {
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(lines_of("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
}

}  // namespace
}  // namespace strata::apps
