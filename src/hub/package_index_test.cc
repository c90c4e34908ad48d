#include "hub/package_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using ::testing::HasSubstr;

Wheel wheel(const std::string& version, const std::string& tags = "py3-none-any") {
  return {"p-" + version + "-" + tags + ".whl", "u", "", version, {}, false};
}

// The chosen file, or the error.
std::string chosen_wheel(const std::vector<Wheel>& wheels, const std::string& version = "") {
  const auto one = choose_wheel(wheels, version);
  return one.ok() ? one->file : one.status().message();
}

TEST(IndexPage, IsReadAsJson) {
  const auto wheels = parse_index_page(
      R"({"files": [{"filename": "p-1.0-py3-none-any.whl", "url": "../w", "size": 9,
           "hashes": {"sha256": ")" +
          std::string(64, 'C') + R"("}, "yanked": "broken"}, {"filename": "p-1.0.tar.gz"}, 1,
          {"filename": "p-2.0-py3-none-any.whl", "url": "v", "yanked": false},
          {"filename": "../p-2.0-py3-none-any.whl", "url": "v"}]})",
      "application/vnd.pypi.simple.v1+json");
  ASSERT_TRUE(wheels.ok());
  ASSERT_EQ(wheels->size(), 2u);
  EXPECT_EQ(wheels->at(0).url, "../w");
  EXPECT_EQ(wheels->at(0).sha256, std::string(64, 'c'));
  EXPECT_EQ(wheels->at(0).bytes, 9u);
  EXPECT_TRUE(wheels->at(0).yanked);
  EXPECT_EQ(wheels->at(1).version, "2.0");
  EXPECT_FALSE(wheels->at(1).yanked);
  EXPECT_FALSE(parse_index_page("{}", "application/json").ok());
}

TEST(IndexPage, IsReadAsHtml) {
  const auto wheels = parse_index_page(
      "<html><abbr href='x-1-a-b-c.whl'><A class=x\n HREF = \"../f/p-1.0-py3-none-any.whl?a&amp;b"
      "#sha256=" +
          std::string(64, 'd') +
          "\" data-yanked=\"\">p</a><a\thref='p-2.0-py3-none-any.whl'>"
          "<a href=none><a ><a href='unclosed><a",
      "text/html");
  ASSERT_TRUE(wheels.ok());
  ASSERT_EQ(wheels->size(), 2u);
  EXPECT_EQ(wheels->at(0).file, "p-1.0-py3-none-any.whl");
  EXPECT_EQ(wheels->at(0).url, "../f/p-1.0-py3-none-any.whl?a&b");
  EXPECT_EQ(wheels->at(0).sha256, std::string(64, 'd'));
  EXPECT_TRUE(wheels->at(0).yanked);
  EXPECT_EQ(wheels->at(1).sha256, "");
  EXPECT_FALSE(wheels->at(1).yanked);
}

TEST(Wheels, TheNewestFinalReleaseIsChosen) {
  Wheel yanked = wheel("3.0");
  yanked.yanked = true;
  const std::vector<Wheel> wheels = {wheel("1.9"), wheel("1.10", "cp311-cp311-linux_x86_64"),
                                     wheel("1.10"), wheel("2.0rc1"), yanked};
  EXPECT_EQ(chosen_wheel(wheels), "p-1.10-py3-none-any.whl");
  EXPECT_EQ(chosen_wheel(wheels, "1.9"), "p-1.9-py3-none-any.whl");
  EXPECT_EQ(chosen_wheel(wheels, "3.0"), "p-3.0-py3-none-any.whl");
  EXPECT_EQ(chosen_wheel(wheels, "2.0rc1"), "p-2.0rc1-py3-none-any.whl");
  EXPECT_THAT(chosen_wheel(wheels, "9"), HasSubstr("no wheel of version 9; name one of 1.9, 1.10"));
  EXPECT_THAT(chosen_wheel({wheel("2.0rc1")}), HasSubstr("no wheel of a final release"));
  EXPECT_THAT(chosen_wheel({}), HasSubstr("no wheel of this package"));
}

}  // namespace
}  // namespace strata
