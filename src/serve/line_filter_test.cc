#include "serve/line_filter.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace strata::serve {
namespace {

namespace json = boost::json;

TEST(LineFilter, KnowsLinesByTheirBeginning) {
  const LineFilter filter("# comment\n\n  billing:  \r\nToday is *, the * of\n");
  EXPECT_TRUE(filter.matches("billing: 5"));
  EXPECT_TRUE(filter.matches("Today is Monday, the first of May"));
  EXPECT_FALSE(filter.matches("Today is Monday"));
  EXPECT_FALSE(filter.matches("the billing: 5"));
  EXPECT_FALSE(filter.matches("# comment"));
  EXPECT_FALSE(filter.matches(""));
  EXPECT_TRUE(LineFilter("# none\n\n").empty());
  EXPECT_FALSE(LineFilter().matches("x"));
}

std::string filtered(std::string_view messages, std::size_t lines) {
  json::value value = json::parse({messages.data(), messages.size()});
  EXPECT_EQ(LineFilter("noise").apply(value.as_array()), lines) << messages;
  return json::serialize(value);
}

TEST(LineFilter, ChangesSystemMessagesOnly) {
  EXPECT_EQ(filtered(R"([{"role":"system","content":"noise 1\na\n noise 2\nb"},
                         {"role":"user","content":"noise"}])",
                     2),
            R"([{"role":"system","content":"a\nb"},{"role":"user","content":"noise"}])");
  EXPECT_EQ(filtered(R"([{"role":"developer","content":"a\nnoise"}])", 1),
            R"([{"role":"developer","content":"a\n"}])");
  EXPECT_EQ(filtered(R"([{"role":"system","content":""},{"role":"system"},5])", 0),
            R"([{"role":"system","content":""},{"role":"system"},5])");
}

TEST(LineFilter, DropsPartsThatAreNothingElse) {
  EXPECT_EQ(filtered(R"([{"role":"system","content":[{"type":"text","text":"noise: 1"},
                         {"type":"text","text":"a"}]}])",
                     1),
            R"([{"role":"system","content":[{"type":"text","text":"a"}]}])");
}

}  // namespace
}  // namespace strata::serve
