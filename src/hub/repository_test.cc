#include "hub/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using ::testing::HasSubstr;

HubListing listing(const std::vector<std::string>& paths) {
  HubListing out;
  for (const std::string& path : paths) out.files.push_back({path, 1, ""});
  return out;
}

// The chosen paths, or the error.
std::string chosen(const std::vector<std::string>& paths, std::string_view selector) {
  const auto files = choose_hub_files(listing(paths), selector);
  if (!files.ok()) return files.status().message();
  std::string out;
  for (const HubFile& file : *files) out += (out.empty() ? "" : " ") + file.path;
  return out;
}

TEST(HubListing, HoldsTheGgufFilesWithTheirSizesAndDigests) {
  const std::string digest(64, 'b');
  const auto read = parse_hub_listing(
      R"({"sha": "c0ffee", "siblings": [{"rfilename": "README.md"},
          {"rfilename": "a/m.gguf", "size": 1, "lfs": {"sha256": ")" +
      digest + R"(", "size": 7}}, {"rfilename": "small.gguf", "size": 5, "lfs": null}]})");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->commit, "c0ffee");
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].path, "a/m.gguf");
  EXPECT_EQ(read->files[0].bytes, 7u);
  EXPECT_EQ(read->files[0].sha256, digest);
  EXPECT_EQ(read->files[1].bytes, 5u);
  EXPECT_EQ(read->files[1].sha256, "");
}

TEST(HubListing, ThatIsBrokenOrHostileIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"sha": "../x", "siblings": []})", R"({"sha": "1"})",
                           R"({"sha": "1", "siblings": {}})", R"({"sha": "1", "siblings": [1]})",
                           R"({"sha": "1", "siblings": [{"rfilename": "../../m.gguf"}]})",
                           R"({"sha": "1", "siblings": [{"rfilename": "/m.gguf"}]})",
                           R"({"sha": "1", "siblings": [{"rfilename": "a\u001b[2J.gguf"}]})"})
    EXPECT_FALSE(parse_hub_listing(text).ok()) << text;
}

TEST(HubFiles, AreChosenByQuantization) {
  const std::vector<std::string> paths = {"m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-Q8_0.gguf",
                                          "m-UD-Q4_K_XL.gguf", "mmproj-m-Q8_0.gguf"};
  EXPECT_EQ(chosen(paths, ""), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen(paths, "q4_k_s"), "m-Q4_K_S.gguf");
  EXPECT_EQ(chosen(paths, "Q8_0"), "m-Q8_0.gguf");
  EXPECT_EQ(chosen(paths, "m-Q8_0.gguf"), "m-Q8_0.gguf");
  EXPECT_EQ(chosen(paths, "mmproj-m-Q8_0.gguf"), "mmproj-m-Q8_0.gguf");
  EXPECT_THAT(chosen(paths, "Q4_K"), HasSubstr("has no model 'Q4_K'; it has: m-Q4_K_M, m-Q4_K_S"));
  EXPECT_THAT(chosen(paths, "m"), HasSubstr("say which model"));
  EXPECT_EQ(chosen({"only.gguf"}, ""), "only.gguf");
  EXPECT_THAT(chosen({"a.gguf", "b.gguf"}, ""), HasSubstr("the repository has: a, b"));
  EXPECT_THAT(chosen({}, ""), HasSubstr("no GGUF model"));
}

TEST(HubFiles, OfASplitModelComeTogetherAndInOrder) {
  const std::vector<std::string> paths = {
      "Q8_0/m-00002-of-00002.gguf", "Q8_0/m-00001-of-00002.gguf", "BF16/m-00001-of-00003.gguf"};
  EXPECT_EQ(chosen(paths, "Q8_0"), "Q8_0/m-00001-of-00002.gguf Q8_0/m-00002-of-00002.gguf");
  EXPECT_THAT(chosen(paths, "BF16"), HasSubstr("lacks part 2 of 3"));
  EXPECT_THAT(chosen({"m-00001-of-99999.gguf"}, ""), HasSubstr("at most 1024"));
}

}  // namespace
}  // namespace strata
