#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  std::string path_ = (fs::path(::testing::TempDir()) / "file_test.bin").string();
  void TearDown() override { fs::remove(path_); }
};

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  std::vector<std::uint8_t> data(100000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 7);
  auto file = File::create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write(data).ok());
  EXPECT_EQ(file->size(), data.size());
  ASSERT_TRUE(file->close().ok());
  const auto again = File::open(path_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->size(), data.size());
  std::vector<std::uint8_t> part(5000);
  ASSERT_TRUE(again->read_exactly(95000, part).ok());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), data.begin() + 95000));
}

TEST_F(FileTest, ReadingPastTheEndIsAnErrorThatNamesThePath) {
  ASSERT_TRUE(File::create(path_).ok());
  const auto file = File::open(path_);
  std::vector<std::uint8_t> part(1);
  EXPECT_THAT(file->read_exactly(0, part).message(), HasSubstr(path_));
  EXPECT_FALSE(file->read_exactly(~Bytes{0}, part).ok());
  EXPECT_TRUE(file->read_exactly(0, {}).ok());
}

TEST_F(FileTest, AFileThatShrinksWhileOpenIsAnErrorNotASignal) {
  auto writer = File::create(path_);
  ASSERT_TRUE(writer->write(std::vector<std::uint8_t>(4096)).ok());
  const auto file = File::open(path_);
  fs::resize_file(path_, 10);
  std::vector<std::uint8_t> part(4096);
  EXPECT_THAT(file->read_exactly(0, part).message(), HasSubstr("ends at byte 10"));
}

TEST_F(FileTest, WhatIsNewReplacesNothingAndFollowsNoLink) {
  const std::string target = path_ + ".target";
  fs::create_symlink(target, path_);
  EXPECT_FALSE(File::create_new(path_).ok());
  EXPECT_FALSE(fs::exists(target));
  fs::remove(path_);
  EXPECT_TRUE(File::create_new(path_).ok());
  EXPECT_FALSE(File::create_new(path_).ok());
}

TEST_F(FileTest, OutputsReplaceNothingAndDevicesTakeThem) {
  ASSERT_TRUE(create_output(path_).ok());
  const auto refusal = [](const std::string& path) {
    const Status status = check_new_file(path);
    EXPECT_EQ(create_output(path).status().message(), status.message());
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(path_), HasSubstr("is there already"));
  EXPECT_THAT(refusal(::testing::TempDir()), HasSubstr("is a folder"));
  EXPECT_THAT(refusal(path_ + ".none/file"), HasSubstr("there is no folder"));
  fs::remove(path_);
  fs::create_symlink(path_ + ".target", path_);
  EXPECT_THAT(refusal(path_), HasSubstr("is a link to"));
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(refusal(path_), HasSubstr("is a pipe"));
  EXPECT_TRUE(create_output("/dev/null").ok());
}

TEST_F(FileTest, OpensRegularFilesOnly) {
  EXPECT_EQ(File::open(path_).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(File::open(::testing::TempDir()).status().message(), HasSubstr("folder"));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(File::open(path_).status().message(), HasSubstr("not a regular file"));
}

TEST_F(FileTest, MovingKeepsOneOwnerOfTheDescriptor) {
  ASSERT_TRUE(File::create(path_).ok());
  auto first = File::open(path_);
  const int descriptor = first->descriptor();
  File second = std::move(first).value();
  EXPECT_EQ(second.descriptor(), descriptor);
  EXPECT_TRUE(second.read_exactly(0, {}).ok());
}

}  // namespace
}  // namespace strata
