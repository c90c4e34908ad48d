#include "weights/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace strata {
namespace {

class ReadAheadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::uint8_t>(i * 2654435761u >> 24);
    auto out = File::create(path_);
    ASSERT_TRUE(out.ok() && out->write(bytes_).ok() && out->close().ok());
    auto file = File::open(path_);
    ASSERT_TRUE(file.ok());
    file_.push_back(std::move(*file));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  FileRange range(Bytes offset, Bytes bytes) const { return {file_.data(), offset, bytes}; }

  const std::string path_ = ::testing::TempDir() + "read_ahead_test";
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(100'000);
  std::vector<File> file_;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(2 * 1024);
};

TEST_F(ReadAheadTest, GivesEveryRangeInOrder) {
  std::vector<FileRange> ranges;
  for (Bytes i = 0; i < 2000; ++i) ranges.push_back(range(i * 7919 % 99'000, 1 + i * 37 % 1000));
  ReadAhead reads(ranges, memory_);
  for (const FileRange& r : ranges) {
    const auto got = reads.next();
    ASSERT_TRUE(got.ok());
    ASSERT_TRUE(std::ranges::equal(*got, std::span(bytes_).subspan(r.offset, r.bytes)));
  }
}

TEST_F(ReadAheadTest, FailsAtTheRangeThatCannotBeRead) {
  const std::vector<FileRange> ranges{range(0, 1000), range(5, 10), range(99'990, 20), range(0, 1)};
  ReadAhead reads(ranges, memory_);
  EXPECT_TRUE(reads.next().ok());
  EXPECT_TRUE(reads.next().ok());
  const auto got = reads.next();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), StatusCode::kIo);
}

TEST_F(ReadAheadTest, MayBeGivenUpAtAnyRange) {
  const std::vector<FileRange> ranges(20, range(0, 1000));
  for (int taken = 0; taken <= 20; ++taken) {
    ReadAhead reads(ranges, memory_);
    for (int i = 0; i < taken; ++i) EXPECT_TRUE(reads.next().ok());
  }
}

}  // namespace
}  // namespace strata
