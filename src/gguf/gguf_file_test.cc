#include "gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gguf/test_support.h"
#include "tests/processor_time.h"
#include "tests/shared_data.h"

namespace strata {
namespace {

using ::testing::AllOf;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::RawGguf;

constexpr std::uint32_t kF32 = 0;

std::string error_of(const Result<GgufFile>& file) {
  return file.ok() ? "it was accepted" : file.status().message();
}

std::string error_of_start(std::string_view start) {
  return error_of(GgufFile::parse(bytes_of(start), start.size(), "m.gguf"));
}

TEST(GgufFile, ReadsTensorsWithAbsoluteOffsetsAndSizes) {
  const auto bytes = testing::sample_model();
  const auto file = GgufFile::parse(bytes, bytes.size(), "m.gguf");
  ASSERT_TRUE(file.ok()) << error_of(file);
  ASSERT_EQ(file->tensors().size(), 4u);
  const TensorInfo* tensor = file->find_tensor("blk.0.attn_q.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->format, FormatId::Q4_K);
  EXPECT_EQ(tensor->dimensions, 2u);
  EXPECT_EQ(tensor->shape, (std::array<std::uint64_t, 4>{256, 2, 1, 1}));
  EXPECT_EQ(tensor->bytes, 288u);
  EXPECT_EQ(tensor->offset, file->tensors()[0].offset + 32 + 256);
  EXPECT_EQ(tensor->offset % 32, 0u);
  EXPECT_EQ(file->find_tensor("blk.0.experts")->rows(), 8u);
  EXPECT_EQ(file->find_tensor("blk.0.attn_q"), nullptr);
  EXPECT_EQ(file->total_bytes(), bytes.size());
}

TEST(GgufFile, ReadsVersionTwo) {
  auto bytes = testing::sample_model();
  bytes[4] = 2;
  const auto file = GgufFile::parse(bytes, bytes.size(), "m.gguf");
  ASSERT_TRUE(file.ok()) << error_of(file);
  EXPECT_EQ(file->version(), 2u);
}

TEST(GgufFile, NamesVersionsAndByteOrdersItDoesNotRead) {
  EXPECT_THAT(error_of(RawGguf(0, 0, 1).parse()), HasSubstr("version 1 is obsolete"));
  EXPECT_THAT(error_of(RawGguf(0, 0, 4).parse()), HasSubstr("version 4 is not known"));
  EXPECT_THAT(error_of(RawGguf(0, 0, 0x03000000).parse()), HasSubstr("big-endian"));
}

TEST(GgufFile, SaysWhatAFileIsThatIsNotAGguf) {
  EXPECT_THAT(error_of_start(""), AllOf(HasSubstr("m.gguf"), HasSubstr("empty")));
  EXPECT_THAT(error_of_start("GG"), HasSubstr("not a GGUF"));
  EXPECT_THAT(error_of_start("\n <!DOCTYPE html><html>"), HasSubstr("web page"));
  EXPECT_THAT(error_of_start("version https://git-lfs.github.com/spec/v1"), HasSubstr("LFS"));
  EXPECT_THAT(error_of_start(std::string("\x10\0\0\0\0\0\0\0{\"a\": ", 14)),
              HasSubstr("safetensors"));
  EXPECT_THAT(error_of_start("{\"error\": \"not found\"}"), HasSubstr("JSON"));
  EXPECT_THAT(error_of_start("PK\x03\x04----"), HasSubstr("zip"));
  EXPECT_THAT(error_of_start("tjgg--------"), HasSubstr("GGML"));
  EXPECT_THAT(error_of_start("\x1b[31mred"), HasSubstr("\\x1b[31mred"));
}

TEST(GgufFile, RefusesATensorWhoseSizeWraps) {
  // 2^42 + 1 rows of 2^20 floats: 2^64 + 2^22 bytes, which wrap to 4 MiB.
  RawGguf wrapping(1, 0);
  wrapping.tensor("t", {std::uint64_t{1} << 20, 4398046511105}, kF32, 0).data(4 << 20);
  EXPECT_THAT(error_of(wrapping.parse()),
              AllOf(HasSubstr("tensor `t`"), HasSubstr("tensor size overflow")));
}

TEST(GgufFile, RefusesShapesWhoseProductWrapsOrThatHaveMoreThanFourDimensions) {
  const std::uint64_t huge = ~std::uint64_t{0};
  RawGguf wrapping(1, 0);
  wrapping.tensor("t", {huge, 2, 1, 1}, kF32, 0).data(64);
  EXPECT_THAT(error_of(wrapping.parse()), HasSubstr("tensor size overflow"));
  RawGguf five(1, 0);
  five.tensor("t", {1, 1, 1, 1, 1}, kF32, 0).data(64);
  EXPECT_THAT(error_of(five.parse()), HasSubstr("5 dimensions"));
  RawGguf none(1, 0);
  none.tensor("t", {}, kF32, 0).data(64);
  EXPECT_THAT(error_of(none.parse()), HasSubstr("0 dimensions"));
  RawGguf empty(1, 0);
  empty.tensor("t", {4, 0}, kF32, 0).data(64);
  EXPECT_THAT(error_of(empty.parse()), HasSubstr("dimension 1 is 0"));
}

TEST(GgufFile, RefusesStringsLongerThanTheFile) {
  for (const std::uint64_t length :
       {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{70}}) {
    RawGguf value(0, 1);
    value.key("k", ValueType::kString).u64(length).u64(0);
    EXPECT_FALSE(value.parse().ok()) << length;
    RawGguf key(0, 1);
    key.u64(length).u64(0).u64(0);
    EXPECT_FALSE(key.parse().ok()) << length;
    RawGguf name(1, 0);
    name.u64(length).data(64);
    EXPECT_FALSE(name.parse().ok()) << length;
  }
}

TEST(GgufFile, AllocatesNothingForLengthsTheFileCannotHold) {
  RawGguf text(0, 1);
  text.key("k", ValueType::kString).u64(std::uint64_t{1} << 30).data(96);
  EXPECT_THAT(error_of(text.parse()), HasSubstr("key `k`"));
  for (const ValueType type : {ValueType::kUint8, ValueType::kString, ValueType::kArray}) {
    RawGguf array(0, 1);
    array.array("k", type, std::uint64_t{1} << 30).data(96);
    EXPECT_THAT(error_of(array.parse()), AllOf(HasSubstr("key `k`"), HasSubstr("bytes follow")));
  }
  EXPECT_THAT(error_of(RawGguf(0, std::uint64_t{1} << 60).data(96).parse()),
              HasSubstr("metadata keys"));
  EXPECT_THAT(error_of(RawGguf(std::uint64_t{1} << 60, 0).data(96).parse()), HasSubstr("tensors"));
}

TEST(GgufFile, RefusesAlignmentsThatAreNoSmallPowerOfTwo) {
  for (const std::uint32_t alignment : {0u, 3u, 1u << 21, 1u << 30}) {
    RawGguf file(0, 1);
    file.key("general.alignment", ValueType::kUint32).u32(alignment);
    EXPECT_THAT(error_of(file.parse()), HasSubstr("power of two")) << alignment;
  }
}

TEST(GgufFile, NamesTheTypeOfAWronglyTypedAlignment) {
  RawGguf file(0, 1);
  file.key("general.alignment", ValueType::kInt32).u32(32);
  EXPECT_THAT(error_of(file.parse()), AllOf(HasSubstr("INT32"), HasSubstr("UINT32")));
}

TEST(GgufFile, ReadsAVocabularyOfAQuarterMillionQuickly) {
  std::vector<std::string> tokens(250000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = fmt::format("token{}", i);
  const std::vector<float> scores(tokens.size(), 1.0f);
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add_array("tokenizer.ggml.tokens", tokens);
  writer.add_array("tokenizer.ggml.merges", tokens);
  writer.add_array("tokenizer.ggml.scores", std::span<const float>(scores));
  const auto path = std::filesystem::path(::testing::TempDir()) / "vocabulary.gguf";
  ASSERT_TRUE(writer.write(path.string()).ok());
  const testing::ProcessorTime time;
  const auto file = GgufFile::open(path.string());
  const double seconds = time.seconds();
  ASSERT_TRUE(file.ok()) << error_of(file);
  EXPECT_EQ((*file->metadata().get_array("tokenizer.ggml.tokens"))->strings.at(249999),
            "token249999");
  EXPECT_LT(seconds, 10.0);  // takes a tenth; the slack is for slow machines
  std::filesystem::remove(path);
}

TEST(GgufFile, CapsTheDepthOfNestedArrays) {
  const auto nested = [](int depth) {
    RawGguf file(0, 1);
    file.key("k", ValueType::kArray);
    for (int i = 1; i < depth; ++i) file.u32(static_cast<std::uint32_t>(ValueType::kArray)).u64(1);
    return file.u32(static_cast<std::uint32_t>(ValueType::kUint8)).u64(0).parse();
  };
  EXPECT_TRUE(nested(8).ok());
  EXPECT_THAT(error_of(nested(9)), HasSubstr("nested deeper"));
  EXPECT_THAT(error_of(nested(100000)), HasSubstr("nested deeper"));
}

TEST(GgufFile, RefusesNamesThatAreThereTwiceOrEmpty) {
  RawGguf keys(0, 2);
  keys.key("k", ValueType::kUint32).u32(1).key("k", ValueType::kUint32).u32(2);
  EXPECT_THAT(error_of(keys.parse()), HasSubstr("key `k` is there twice"));
  RawGguf tensors(2, 0);
  tensors.tensor("t", {8}, kF32, 0).tensor("t", {8}, kF32, 32).data(64);
  EXPECT_THAT(error_of(tensors.parse()), HasSubstr("tensor `t` is there twice"));
  RawGguf key(0, 1);
  key.key("", ValueType::kUint32).u32(1);
  EXPECT_THAT(error_of(key.parse()), HasSubstr("is empty"));
  RawGguf tensor(1, 0);
  tensor.tensor("", {8}, kF32, 0).data(32);
  EXPECT_THAT(error_of(tensor.parse()), HasSubstr("empty name"));
}

TEST(GgufFile, RefusesTensorsThatOverlapOrAreNotAligned) {
  RawGguf overlap(2, 0);
  overlap.tensor("b", {8}, kF32, 32).tensor("a", {16}, kF32, 0).data(64);
  EXPECT_THAT(error_of(overlap.parse()), HasSubstr("`a` and `b` overlap"));
  RawGguf crooked(1, 0);
  crooked.tensor("t", {8}, kF32, 4).data(64);
  EXPECT_THAT(error_of(crooked.parse()), HasSubstr("alignment 32"));
  RawGguf far(1, 0);
  far.tensor("t", {8}, kF32, ~std::uint64_t{31}).data(64);
  EXPECT_THAT(error_of(far.parse()), HasSubstr("overflows"));
}

TEST(GgufFile, RefusesRowsThatAreNoWholeBlocks) {
  RawGguf file(1, 0);
  file.tensor("t", {100, 8}, static_cast<std::uint32_t>(FormatId::Q4_K), 0).data(1024);
  EXPECT_THAT(error_of(file.parse()), AllOf(HasSubstr("tensor `t`"), HasSubstr("Q4_K")));
}

TEST(GgufFile, NamesTheTensorOfAnUnknownType) {
  for (const std::uint32_t type : {4u, 31u, 1000u, ~0u}) {
    RawGguf file(1, 0);
    file.tensor("t", {8}, type, 0).data(64);
    EXPECT_THAT(error_of(file.parse()),
                AllOf(HasSubstr("tensor `t`"), HasSubstr(fmt::format("type {} ", type))));
  }
}

TEST(GgufFile, SaysWhoseATypeOfAnotherProgramIs) {
  const std::tuple<std::uint32_t, const char*, const char*> types[] = {
      {31, "Q4_0_4_4", "llama.cpp"}, {36, "I2_S", "bitnet.cpp"}, {139, "IQ4_K", "ik_llama.cpp"}};
  for (const auto& [type, name, program] : types) {
    RawGguf file(1, 0);
    file.tensor("t", {256}, type, 0).data(256);
    EXPECT_THAT(error_of(file.parse()),
                AllOf(HasSubstr("tensor `t`"), HasSubstr(name), HasSubstr(program)));
  }
}

TEST(GgufFile, SaysExpectedAndActualBytesOfATruncatedFile) {
  RawGguf file(1, 0);
  file.tensor("t", {100}, kF32, 0).data(399);
  const auto expected = fmt::format("{} bytes, but its header describes {}", file.bytes().size(),
                                    file.bytes().size() + 1);
  EXPECT_THAT(error_of(file.parse()), AllOf(HasSubstr(expected), HasSubstr("cut short")));
}

TEST(GgufFile, EveryTruncationOfASampleIsAnError) {
  for (const auto& sample : testing::sample_files()) {
    const auto whole = GgufFile::parse(sample.bytes, sample.bytes.size(), "m.gguf");
    ASSERT_TRUE(whole.ok()) << sample.name << error_of(whole);
    const bool padded = !whole->tensors().empty();
    const std::size_t end = padded ? sample.bytes.size() - 32 : sample.bytes.size();
    for (std::size_t length = 0; length < end; ++length)
      EXPECT_FALSE(GgufFile::parse(std::span(sample.bytes).first(length), length, "m.gguf").ok())
          << sample.name << " " << length;
  }
}

TEST(GgufFile, RefusesBoolsOtherThanZeroAndOne) {
  RawGguf scalar(0, 1);
  scalar.key("k", ValueType::kBool).number(std::uint8_t{2});
  EXPECT_THAT(error_of(scalar.parse()), HasSubstr("BOOL"));
  RawGguf array(0, 1);
  array.array("k", ValueType::kBool, 2).number(std::uint8_t{1}).number(std::uint8_t{9});
  EXPECT_THAT(error_of(array.parse()), HasSubstr("BOOL"));
}

TEST(GgufFile, RefusesUnknownValueTypes) {
  RawGguf scalar(0, 1);
  scalar.key("k", static_cast<ValueType>(13)).u32(0);
  EXPECT_THAT(error_of(scalar.parse()), HasSubstr("value type 13"));
  RawGguf array(0, 1);
  array.array("k", static_cast<ValueType>(77), 1).u32(0);
  EXPECT_THAT(error_of(array.parse()), HasSubstr("element type 77"));
}

TEST(GgufFile, OpensEverySharedFile) {
  STRATA_REQUIRE_SHARED_DATA();
  int opened = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(testing::shared_data_root())) {
    if (entry.path().extension() != ".gguf") continue;
    const auto file = GgufFile::open(entry.path().string());
    EXPECT_TRUE(file.ok()) << error_of(file);
    EXPECT_TRUE(!file.ok() || file->warnings().empty()) << entry.path();
    ++opened;
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace strata
