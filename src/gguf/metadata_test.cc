#include "gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/gguf_file.h"
#include "gguf/test_support.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RawGguf;

class AllTypes : public ::testing::Test {
 protected:
  AllTypes() : bytes_(testing::sample_of_all_types()) {
    file_ = *GgufFile::parse(bytes_, bytes_.size(), "types.gguf");
  }
  const Metadata& metadata() const { return file_.metadata(); }
  const MetadataArray& array(std::string_view key) const { return **metadata().get_array(key); }

  testing::ByteVector bytes_;
  GgufFile file_;
};

TEST_F(AllTypes, ScalarsOfEveryTypeKeepTheirValues) {
  EXPECT_EQ(*metadata().get_integer("u8"), 200);
  EXPECT_EQ(*metadata().get_integer("i8"), -100);
  EXPECT_EQ(*metadata().get_integer("u16"), 60000);
  EXPECT_EQ(*metadata().get_integer("i16"), -30000);
  EXPECT_EQ(*metadata().get_integer("u32"), 4000000000);
  EXPECT_EQ(*metadata().get_integer("i32"), -2000000000);
  EXPECT_EQ(*metadata().get_integer("i64"), -(std::int64_t{1} << 62));
  EXPECT_EQ(*metadata().get_float("f32"), 1.5);
  EXPECT_EQ(*metadata().get_float("f64"), -2.5);
  EXPECT_EQ(*metadata().get_float("i8"), -100.0);
  EXPECT_EQ(*metadata().get_bool("bool"), true);
  EXPECT_EQ(*metadata().get_string("general.architecture"), "llama");
  EXPECT_EQ(metadata().keys()[0], "general.alignment");
}

TEST_F(AllTypes, ArraysOfEveryTypeKeepTheirValues) {
  EXPECT_THAT(*array("u8s").as_integers(), ElementsAre(200, 200));
  EXPECT_THAT(*array("i16s").as_integers(), ElementsAre(-30000, -30000));
  EXPECT_THAT(*array("u32s").as_integers(), ElementsAre(4000000000, 4000000000));
  EXPECT_THAT(*array("f32s").as_floats(), ElementsAre(1.5, 1.5));
  EXPECT_THAT(*array("f64s").as_floats(), ElementsAre(-2.5, -2.5));
  EXPECT_THAT(*array("i8s").as_floats(), ElementsAre(-100.0, -100.0));
  EXPECT_THAT(*array("bools").as_bools(), ElementsAre(true, false, true));
  EXPECT_THAT(*array("texts").as_strings(), ElementsAre("one", "", std::string_view("\0\xff", 2)));
  ASSERT_EQ(array("nested").arrays.size(), 2u);
  EXPECT_THAT(*array("nested").arrays[1].as_integers(), ElementsAre(1, -1));
}

TEST_F(AllTypes, IntegersAboveTheSignedRangeAreErrors) {
  EXPECT_THAT(metadata().get_integer("u64").status().message(), HasSubstr("9223372036854775808"));
  EXPECT_FALSE(array("u64s").as_integers().ok());
}

TEST_F(AllTypes, WrongTypesNameTheKeyAndBothTypes) {
  EXPECT_THAT(metadata().get_string("i8").status().message(),
              AllOf(HasSubstr("`i8`"), HasSubstr("INT8"), HasSubstr("STRING")));
  EXPECT_THAT(metadata().get_integer("f32").status().message(), HasSubstr("FLOAT32"));
  EXPECT_THAT(metadata().get_bool("u8").status().message(), HasSubstr("BOOL"));
  EXPECT_THAT(metadata().get_float("bool").status().message(), HasSubstr("BOOL"));
  EXPECT_THAT(metadata().get_integer("texts").status().message(), HasSubstr("ARRAY of STRING"));
  EXPECT_FALSE(metadata().get_array("i8").ok());
  EXPECT_FALSE(metadata().optional_integer("bool").ok());
}

TEST_F(AllTypes, AbsentKeysAreNotFoundOrNothing) {
  EXPECT_EQ(metadata().get_string("none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(*metadata().optional_string("none"), std::nullopt);
  EXPECT_EQ(*metadata().optional_integer("none"), std::nullopt);
  EXPECT_EQ(*metadata().optional_float("none"), std::nullopt);
  EXPECT_EQ(*metadata().optional_bool("none"), std::nullopt);
  EXPECT_EQ(*metadata().optional_integer("u8"), 200);
}

TEST_F(AllTypes, ElementsAreNeverReadAsAnotherFamily) {
  EXPECT_FALSE(array("f32s").as_integers().ok());
  EXPECT_FALSE(array("bools").as_integers().ok());
  EXPECT_FALSE(array("u8s").as_bools().ok());
  EXPECT_FALSE(array("u8s").as_strings().ok());
  EXPECT_FALSE(array("texts").as_floats().ok());
  EXPECT_FALSE(array("texts").as_bools().ok());
  EXPECT_FALSE(array("nested").as_integers().ok());
}

// Narrow elements where wide ones are usual must be read at their own width.
TEST(MetadataArray, ReadsScoresAndTokenTypesAtTheirDeclaredWidth) {
  RawGguf file(0, 2);
  file.array("tokenizer.ggml.scores", ValueType::kUint8, 3).number(std::uint8_t{1});
  file.number(std::uint8_t{2}).number(std::uint8_t{3});
  file.array("tokenizer.ggml.token_type", ValueType::kUint8, 1).number(std::uint8_t{6});
  const auto parsed = file.parse();
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto* scores = *parsed->metadata().get_array("tokenizer.ggml.scores");
  EXPECT_THAT(*scores->as_floats(), ElementsAre(1.0, 2.0, 3.0));
  const auto* types = *parsed->metadata().get_array("tokenizer.ggml.token_type");
  EXPECT_THAT(*types->as_integers(), ElementsAre(6));
}

}  // namespace
}  // namespace strata
