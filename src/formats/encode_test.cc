#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "formats/all.h"
#include "formats/registry.h"

namespace strata {
namespace {

// |decode(encode(x)) - x| <= relative * (largest magnitude of the block) + absolute.
//
// An f16 factor is off by at most 2^-11 of itself, or by 2^-25 where it is subnormal. Moving the
// factor of n steps moves the outermost value by n times that: `relative` grows by 2^-11 and
// `absolute` is n * 2^-25. With A the largest magnitude:
//   symmetric codes, half H   the far end of the shorter side is cut: A / H
//   affine codes, top T       half a step of a span of at most 2 A: A / T; scale and minimum move
//   K scales, top T           the same, and scale and minimum round to 6 bits: half a unit of
//                             2 A / 63 and of A / 63
//   Q2_K                      the same with 4 bits
//   Q6_K, Q3_K                as H = 32 or 4, and the scale rounds to half a unit of A / 127, A /
//   31 IQ4_NL, IQ4_XS            the far end is cut at 113 of 127; IQ4_XS's scale rounds as Q3_K's
//   MXFP4, NVFP4              the gaps between 4-bit floats, and NVFP4's scale: see their files
//   ternary codes             half of A
//   codebooks                 what is stored reaches no further than A and half a unit of the
//   scale,
//                             A / 31 or A / 15; with seven signs for eight elements, one of them
//                             may have the wrong one
// f32 arithmetic adds a few 2^-24, covered by 2^-16.
struct Bound {
  double relative;
  double absolute;
  double reach = 65504;  // of the largest magnitude
};
constexpr double kHalfUlp = 0x1p-11;
constexpr double kArithmetic = 0x1p-16;

const std::map<FormatId, Bound>& bounds() {
  static const std::map<FormatId, Bound> all = {
      {FormatId::F32, {0, 0}},
      {FormatId::F16, {kHalfUlp, 0x1p-25}},
      {FormatId::BF16, {0x1p-8, 0x1p-134}},
      {FormatId::Q4_0, {1.0 / 8 + kHalfUlp + kArithmetic, 8 * 0x1p-25}},
      {FormatId::Q5_0, {1.0 / 16 + kHalfUlp + kArithmetic, 16 * 0x1p-25}},
      {FormatId::Q8_0, {1.0 / 254 + kHalfUlp + kArithmetic, 127 * 0x1p-25}},
      {FormatId::Q4_1, {1.0 / 15 + 4 * kHalfUlp + kArithmetic, 16 * 0x1p-25}},
      {FormatId::Q5_1, {1.0 / 31 + 4 * kHalfUlp + kArithmetic, 32 * 0x1p-25}},
      {FormatId::Q4_K, {1.0 / 15 + 1.5 / 63 + 4 * kHalfUlp + kArithmetic, 63 * 17 * 0x1p-25}},
      {FormatId::Q5_K, {1.0 / 31 + 1.5 / 63 + 4 * kHalfUlp + kArithmetic, 63 * 33 * 0x1p-25}},
      {FormatId::Q6_K, {1.0 / 32 + 0.5 / 127 + 2 * kHalfUlp + kArithmetic, 127 * 33 * 0x1p-25}},
      {FormatId::Q2_K, {1.0 / 3 + 1.5 / 15 + 4 * kHalfUlp + kArithmetic, 15 * 5 * 0x1p-25}},
      {FormatId::Q3_K, {1.0 / 4 + 0.5 / 31 + 2 * kHalfUlp + kArithmetic, 31 * 5 * 0x1p-25}},
      {FormatId::IQ4_NL, {14.0 / 127 + kHalfUlp + kArithmetic, 127 * 0x1p-25}},
      {FormatId::IQ4_XS, {14.0 / 127 + 0.5 / 31 + 2 * kHalfUlp + kArithmetic, 31 * 128 * 0x1p-25}},
      {FormatId::MXFP4, {1.0 / 4 + kArithmetic, 0x1p-126}},
      {FormatId::NVFP4, {1.0 / 6 + 1.0 / 8 + kArithmetic, 6 * 0x1p-10, 6 * 448}},
      {FormatId::TQ1_0, {1.0 / 2 + kHalfUlp + kArithmetic, 0x1p-25}},
      {FormatId::TQ2_0, {1.0 / 2 + kHalfUlp + kArithmetic, 0x1p-25}},
      {FormatId::IQ1_S, {1 + 0.5 / 15 + 2 * kHalfUlp, 15 * 2 * 0x1p-25}},
      {FormatId::IQ1_M, {1 + 0.5 / 15 + 2 * kHalfUlp, 15 * 2 * 0x1p-25}},
      {FormatId::IQ2_XXS, {2 + 0.5 / 31 + 2 * kHalfUlp, 31 * 6 * 0x1p-25}},
      {FormatId::IQ2_XS, {2 + 0.5 / 31 + 2 * kHalfUlp, 31 * 6 * 0x1p-25}},
      {FormatId::IQ2_S, {1 + 0.5 / 31 + 2 * kHalfUlp, 31 * 6 * 0x1p-25}},
      {FormatId::IQ3_XXS, {2 + 0.5 / 31 + 2 * kHalfUlp, 31 * 16 * 0x1p-25}},
      {FormatId::IQ3_S, {1 + 0.5 / 31 + 2 * kHalfUlp, 31 * 15 * 0x1p-25}},
  };
  return all;
}

class EveryEncoder : public ::testing::TestWithParam<FormatId> {
 protected:
  std::vector<float> round_trip(const std::vector<float>& x) const {
    const auto n = static_cast<std::int64_t>(x.size());
    std::vector<std::uint8_t> row(row_bytes(ops_.info, n));
    std::vector<float> back(x.size());
    ops_.encode_row(x.data(), n, row.data());
    ops_.decode_row(row.data(), n, back.data());
    return back;
  }

  // Checks the bound in every block of `x`.
  void expect_bounded(const std::vector<float>& x) const {
    const Bound bound = bounds().at(GetParam());
    const auto back = round_trip(x);
    const std::size_t block = ops_.info.block_elements;
    for (std::size_t first = 0; first < x.size(); first += block) {
      double largest = 0;
      for (std::size_t i = first; i < first + block; ++i)
        largest = std::max(largest, std::fabs(double{x[i]}));
      if (largest > bound.reach) continue;
      const double limit = bound.relative * largest + bound.absolute;
      for (std::size_t i = first; i < first + block; ++i)
        ASSERT_LE(std::fabs(double{back[i]} - x[i]), limit) << "element " << i << " is " << x[i];
    }
  }

  const FormatOps& ops_ = *find_format(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Formats, EveryEncoder, ::testing::ValuesIn(ids_of(AllFormats{})),
                         [](const auto& tested) { return std::string(format_name(tested.param)); });

TEST_P(EveryEncoder, ErrsWithinTheStatedBound) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const float size : {0.0f, 1e-30f, 1e-7f, 1e-5f, 1e-3f, 0.02f, 1.0f, 300.0f, 5000.0f}) {
    std::vector<float> x(STRATA_SLOW ? 512 : 4096);
    for (float& value : x) value = size * normal(random);
    expect_bounded(x);
    for (float& value : x) value = std::fabs(value);
    expect_bounded(x);
    for (float& value : x) value = -value - 3 * size;
    expect_bounded(x);
  }
}

TEST_P(EveryEncoder, BoundsSparseAndLopsidedBlocks) {
  for (const float top : {65504.0f, 1.0f, -1.0f, -65504.0f}) {
    std::vector<float> x(512, 0.0f);
    x[5] = top;
    x[300] = -top;
    x[301] = top / 3;
    expect_bounded(x);
    expect_bounded(std::vector<float>(256, top));
  }
}

TEST_P(EveryEncoder, KeepsZeroExactly) {
  const std::vector<float> zeros(512, 0.0f);
  EXPECT_EQ(round_trip(zeros), zeros);
}

TEST_P(EveryEncoder, SurvivesInfinityAndNotANumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float huge = std::numeric_limits<float>::max();
  for (const float bad : {infinity, -infinity, std::nanf(""), huge, -huge}) {
    std::vector<float> x(512, 1.0f);
    x[0] = bad;
    const auto back = round_trip(x);
    EXPECT_NEAR(back[511], 1.0f, std::max(0.05, bounds().at(GetParam()).relative))
        << "the block beside the bad one is untouched";
  }
}

// The largest magnitude bounds an element of a codebook format loosely. No code of R bits per
// element leaves normal noise a relative error below 2^-R; these come close, and a wrong index or
// sign would show.
TEST(Encoder, CodebooksLeaveLittleMoreErrorThanTheirBitsAllow) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  std::vector<float> x(STRATA_SLOW ? 4096 : 16384), back(x.size());
  for (float& value : x) value = normal(random);
  const auto n = static_cast<std::int64_t>(x.size());
  for (const FormatId id : {FormatId::IQ1_S, FormatId::IQ1_M, FormatId::IQ2_XXS, FormatId::IQ2_XS,
                            FormatId::IQ2_S, FormatId::IQ3_XXS, FormatId::IQ3_S}) {
    const FormatOps& ops = *find_format(id);
    std::vector<std::uint8_t> row(row_bytes(ops.info, n));
    const double bits = 8.0 * ops.info.block_bytes / ops.info.block_elements;
    ops.encode_row(x.data(), n, row.data());
    ops.decode_row(row.data(), n, back.data());
    double errors = 0, squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      errors += (double{back[i]} - x[i]) * (double{back[i]} - x[i]);
      squares += double{x[i]} * x[i];
    }
    EXPECT_LT(std::sqrt(errors / squares), 1.7 * std::exp2(-bits)) << ops.info.name;
  }
}

}  // namespace
}  // namespace strata
