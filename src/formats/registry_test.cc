#include "formats/registry.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "formats/all.h"

namespace strata {
namespace {

std::vector<std::uint8_t> random_bytes(std::size_t n) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> out(n);
  for (auto& byte : out) byte = static_cast<std::uint8_t>(random() & 0xff);
  return out;
}

class EveryFormat : public ::testing::TestWithParam<FormatId> {
 protected:
  const FormatOps& ops_ = *find_format(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Registry, EveryFormat, ::testing::ValuesIn(ids_of(AllFormats{})),
                         [](const auto& tested) { return std::string(format_name(tested.param)); });

TEST_P(EveryFormat, HasTheBlockGeometryOfGguf) {
  const auto expected = format_info(GetParam());
  ASSERT_TRUE(expected.has_value());
  EXPECT_EQ(ops_.info.id, GetParam());
  EXPECT_EQ(ops_.info.name, expected->name);
  EXPECT_EQ(ops_.info.block_elements, expected->block_elements);
  EXPECT_EQ(ops_.info.block_bytes, expected->block_bytes);
}

TEST_P(EveryFormat, UnpackingARowUndoesRepacking) {
  const std::int64_t bytes = 3 * ops_.info.block_bytes;
  const auto plain = random_bytes(kLanes * bytes);
  std::vector<std::uint8_t> group(plain.size()), row(bytes);
  ops_.repack_group(plain.data(), bytes, group.data());
  EXPECT_NE(group, plain);
  for (int lane = 0; lane < kLanes; ++lane) {
    ops_.unpack_row(group.data(), bytes, lane, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), plain.begin() + lane * bytes)) << lane;
  }
}

TEST_P(EveryFormat, RepackingKeepsEveryByteOfWholeMatrices) {
  const std::int64_t bytes = 2 * ops_.info.block_bytes;
  for (const std::int64_t rows : {0, 1, 7, 8, 9, 16, 23}) {
    const auto plain = random_bytes(rows * bytes);
    std::vector<std::uint8_t> packed(plain.size()), row(bytes);
    repack_rows(ops_, plain.data(), rows, bytes, packed.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      if (r < rows - rows % kLanes)
        ops_.unpack_row(packed.data() + (r - r % kLanes) * bytes, bytes, int(r % kLanes),
                        row.data());
      else
        row.assign(packed.begin() + r * bytes, packed.begin() + (r + 1) * bytes);
      EXPECT_TRUE(std::equal(row.begin(), row.end(), plain.begin() + r * bytes)) << r;
    }
  }
}

TEST_P(EveryFormat, LooksUpAnyRowOfARepackedMatrix) {
  // Longer than the buffer the look-up unpacks into, and no multiple of it.
  const std::int64_t blocks = 2 * (2048 / ops_.info.block_bytes) + 1;
  const std::int64_t elements = blocks * ops_.info.block_elements;
  const std::int64_t bytes = row_bytes(ops_.info, elements);
  const std::int64_t rows = 11;
  const auto plain = random_bytes(rows * bytes);
  std::vector<std::uint8_t> packed(plain.size());
  repack_rows(ops_, plain.data(), rows, bytes, packed.data());
  std::vector<float> expected(elements), got(elements);
  for (std::int64_t r = 0; r < rows; ++r) {
    ops_.decode_row(plain.data() + r * bytes, elements, expected.data());
    decode_interleaved_row(ops_, packed.data(), rows, r, elements, got.data());
    EXPECT_EQ(0, std::memcmp(expected.data(), got.data(), elements * sizeof(float))) << r;
  }
}

TEST(Registry, SharesOneEntryPerFormat) {
  EXPECT_EQ(find_format(FormatId::Q4_0), find_format(FormatId::Q4_0));
  EXPECT_NE(find_format(FormatId::Q4_0), find_format(FormatId::Q4_K));
}

TEST(Registry, RefusesAKnownFormatByName) {
  EXPECT_EQ(find_format(FormatId::Q8_K), nullptr);
  const auto refused = require_format(FormatId::Q8_K, "blk.0.ffn_up.weight");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.status().message().find("Q8_K"), std::string::npos);
  EXPECT_NE(refused.status().message().find("blk.0.ffn_up.weight"), std::string::npos);
  EXPECT_NE(refused.status().message().find("Q4_K"), std::string::npos);
}

TEST(Registry, RefusesANumberGgufDoesNotDefine) {
  const auto refused = require_format(static_cast<FormatId>(4711), "x");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.status().message().find("4711"), std::string::npos);
}

TEST(Registry, FindsWhatItRequires) {
  const auto found = require_format(FormatId::Q4_K, "x");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, find_format(FormatId::Q4_K));
}

}  // namespace
}  // namespace strata
