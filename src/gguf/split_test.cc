#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "gguf/gguf_file.h"
#include "gguf/splits.h"
#include "gguf/test_support.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Part {
  std::uint16_t number;
  std::uint16_t count;
  std::string tensor;
};

class Split : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              fmt::format("split_{}", ::testing::UnitTest::GetInstance()->random_seed() +
                                          static_cast<int>(::getpid()));
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(int part, int parts) const {
    return split_path((folder_ / "m").string(), static_cast<std::uint32_t>(part),
                      static_cast<std::uint32_t>(parts));
  }

  void write(const std::string& path, const Part& part, std::int32_t total) const {
    static const std::vector<std::uint8_t> kData(64, 7);
    GgufWriter writer;
    if (part.number == 0) writer.add("general.architecture", "llama");
    writer.add("split.no", part.number);
    writer.add("split.count", part.count);
    writer.add("split.tensors.count", total);
    const std::uint64_t shape[] = {16};
    if (!part.tensor.empty()) writer.add_tensor(part.tensor, FormatId::F32, shape, kData);
    ASSERT_TRUE(writer.write(path).ok());
  }

  std::string error() const {
    const auto file = GgufFile::open(path(1, 3));
    return file.ok() ? "it was accepted" : file.status().message();
  }

  void write_three() const {
    write(path(1, 3), {0, 3, ""}, 2);
    write(path(2, 3), {1, 3, "a"}, 2);
    write(path(3, 3), {2, 3, "b"}, 2);
  }

  fs::path folder_;
};

TEST_F(Split, ReadsAllPartsAndSaysWhereEachTensorLies) {
  write_three();
  const auto file = GgufFile::open(path(1, 3));
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->paths().size(), 3u);
  EXPECT_EQ(file->paths()[2], path(3, 3));
  EXPECT_EQ(file->find_tensor("a")->file, 1u);
  EXPECT_EQ(file->find_tensor("b")->file, 2u);
  EXPECT_EQ(file->total_bytes(),
            fs::file_size(path(1, 3)) + fs::file_size(path(2, 3)) + fs::file_size(path(3, 3)));
}

TEST_F(Split, NamesAMissingPart) {
  write_three();
  fs::remove(path(2, 3));
  EXPECT_THAT(error(), AllOf(HasSubstr("part 2 of 3 is missing"), HasSubstr(path(2, 3))));
}

TEST_F(Split, ALaterPartPointsToTheFirst) {
  write_three();
  const auto file = GgufFile::open(path(2, 3));
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.status().message(), HasSubstr(path(1, 3)));
}

TEST_F(Split, RefusesPartsThatContradictTheirNames) {
  write_three();
  write(path(2, 3), {2, 3, "a"}, 2);
  EXPECT_THAT(error(), AllOf(HasSubstr(path(2, 3)), HasSubstr("split.no = 2")));
  write(path(2, 3), {1, 4, "a"}, 2);
  EXPECT_THAT(error(), HasSubstr("split.count = 4"));
}

TEST_F(Split, RefusesATensorInTwoParts) {
  write_three();
  write(path(3, 3), {2, 3, "a"}, 2);
  EXPECT_THAT(error(), HasSubstr("tensor `a` is there twice"));
}

TEST_F(Split, RefusesAWrongTotalOfTensors) {
  write_three();
  write(path(1, 3), {0, 3, ""}, 3);
  EXPECT_THAT(error(), HasSubstr("hold 2 tensors"));
}

TEST_F(Split, RefusesARenamedPart) {
  write_three();
  const auto renamed = folder_ / "renamed.gguf";
  fs::rename(path(1, 3), renamed);
  const auto file = GgufFile::open(renamed.string());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.status().message(), HasSubstr("-00001-of-00003.gguf"));
}

TEST_F(Split, WarnsOfAPartsNameWithoutSplitKeys) {
  GgufWriter writer;
  ASSERT_TRUE(writer.write(path(1, 3)).ok());
  const auto file = GgufFile::open(path(1, 3));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->warnings().size(), 1u);
}

TEST(SplitName, TakesNamesApart) {
  const auto name = parse_split_name("/x/llama-00002-of-00015.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "/x/llama");
  EXPECT_EQ(name->part, 2u);
  EXPECT_EQ(name->parts, 15u);
  EXPECT_EQ(split_path(name->prefix, 3, 15), "/x/llama-00003-of-00015.gguf");
  for (const char* other :
       {"llama.gguf", "-00001-of-00002.gguf", "m-00000-of-00002.gguf", "m-00003-of-00002.gguf",
        "m-00001-of-00000.gguf", "m-0000x-of-00002.gguf", "m-00001-of-00002.bin",
        "m-+0001-of-00002.gguf"})
    EXPECT_FALSE(parse_split_name(other)) << other;
}

}  // namespace
}  // namespace strata
