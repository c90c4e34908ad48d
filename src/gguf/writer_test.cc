#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "gguf/test_support.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::ByteVector;
using ::testing::HasSubstr;

GgufFile parsed(const ByteVector& bytes) {
  auto file = GgufFile::parse(bytes, bytes.size(), "m.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? *file : GgufFile();
}

std::string error_of(const GgufWriter& writer) {
  return writer.write([](std::span<const std::uint8_t>) { return Status(); }).message();
}

// Copying every entry of a parsed file must give the same bytes again.
TEST(GgufWriter, CopiedMetadataIsTheSameToTheByte) {
  const ByteVector bytes = testing::sample_of_all_types();
  const GgufFile file = parsed(bytes);
  GgufWriter writer(64);
  for (const std::string_view key : file.metadata().keys())
    if (key != "general.alignment") writer.add(key, *file.metadata().find(key));
  EXPECT_EQ(testing::written(writer), bytes);
}

TEST(GgufWriter, WritesNothingWhereTheDiskIsTooSmall) {
  const std::uint64_t shape[] = {std::uint64_t{1} << 40, std::uint64_t{1} << 16};
  GgufWriter writer;
  writer.add_tensor("vast", FormatId::F32, shape, [](const ByteSink&) -> Status {
    ADD_FAILURE() << "it is written";
    return internal_error("it is written");
  });
  const std::string path = (fs::path(::testing::TempDir()) / "vast.gguf").string();
  const Status status = writer.write(path);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("too little for a file of"));
  EXPECT_FALSE(fs::exists(path + ".partial"));
  EXPECT_FALSE(fs::exists(path));
}

TEST(GgufWriter, StreamedTensorsComeBackFromTheFile) {
  ByteVector data(36);
  std::iota(data.begin(), data.end(), std::uint8_t{1});
  const std::uint64_t shape[] = {3, 3};
  GgufWriter writer(128);
  writer.add_tensor("first", FormatId::F32, shape, std::span<const std::uint8_t>(data));
  writer.add_tensor("streamed", FormatId::F32, shape, [&](const ByteSink& sink) -> Status {
    for (const std::uint8_t& byte : data) STRATA_TRY(sink({&byte, 1}));
    return {};
  });
  const std::string path = (fs::path(::testing::TempDir()) / "streamed.gguf").string();
  ASSERT_TRUE(writer.write(path).ok());
  EXPECT_FALSE(fs::exists(path + ".partial"));
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  for (const TensorInfo& tensor : file->tensors()) {
    EXPECT_EQ(tensor.offset % 128, 0u);
    ByteVector read(tensor.bytes);
    ASSERT_TRUE(File::open(path)->read_exactly(tensor.offset, read).ok());
    EXPECT_EQ(read, data) << tensor.name;
  }
  fs::remove(path);
}

TEST(GgufWriter, ReportsTheFirstMistakeWhenWriting) {
  const std::uint64_t row[] = {33};
  const ByteVector data(132);
  GgufWriter keys;
  keys.add("k", true);
  keys.add("k", false);
  EXPECT_THAT(error_of(keys), HasSubstr("`k` is given twice"));
  GgufWriter tensors;
  tensors.add_tensor("t", FormatId::F32, row, std::span<const std::uint8_t>(data));
  tensors.add_tensor("t", FormatId::F32, row, std::span<const std::uint8_t>(data));
  EXPECT_THAT(error_of(tensors), HasSubstr("`t` is given twice"));
  GgufWriter blocks;
  blocks.add_tensor("t", FormatId::Q8_0, row, std::span<const std::uint8_t>(data));
  EXPECT_THAT(error_of(blocks), HasSubstr("Q8_0"));
  EXPECT_THAT(error_of(GgufWriter(48)), HasSubstr("alignment 48"));
  GgufWriter alignment;
  alignment.add("general.alignment", std::uint32_t{64});
  EXPECT_THAT(error_of(alignment), HasSubstr("general.alignment"));
}

TEST(GgufWriter, RefusesTensorDataOfAnotherSize) {
  const std::uint64_t row[] = {8};
  for (const std::size_t size : {31, 33}) {
    const ByteVector data(size);
    GgufWriter writer;
    writer.add_tensor("t", FormatId::F32, row, std::span<const std::uint8_t>(data));
    EXPECT_THAT(error_of(writer), HasSubstr("its 32 bytes")) << size;
  }
}

TEST(GgufWriter, ReplacesNeitherDevicesNorWhatLiesBeside) {
  EXPECT_THAT(GgufWriter().write("/dev/null").message(), HasSubstr("not a regular file"));
  const std::string path = (fs::path(::testing::TempDir()) / "beside.gguf").string();
  ASSERT_TRUE(File::create(path + ".partial").ok());
  EXPECT_THAT(GgufWriter().write(path).message(), HasSubstr(".partial is there already"));
  EXPECT_TRUE(fs::remove(path + ".partial"));
  EXPECT_FALSE(fs::exists(path));
}

TEST(GgufWriter, AFailedWriteLeavesTheOldFile) {
  const std::string path = (fs::path(::testing::TempDir()) / "kept.gguf").string();
  ASSERT_TRUE(GgufWriter().write(path).ok());
  const auto before = fs::file_size(path);
  const std::uint64_t row[] = {8};
  GgufWriter failing;
  failing.add_tensor("t", FormatId::F32, row,
                     [](const ByteSink&) { return io_error("the source broke"); });
  EXPECT_THAT(failing.write(path).message(), HasSubstr("the source broke"));
  EXPECT_EQ(fs::file_size(path), before);
  EXPECT_FALSE(fs::exists(path + ".partial"));
  fs::remove(path);
}

}  // namespace
}  // namespace strata
