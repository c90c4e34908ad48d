#include "base/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>

namespace strata {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kThinning = STRATA_SLOW ? 21 : 1;
constexpr int kSamples = 400'000 / kThinning;

// Where long double is no wider than double, the reference itself may err by one ulp.
constexpr double kReferenceError = std::numeric_limits<long double>::digits > 53 ? 0.0 : 1.0;

// Distance in units of the spacing of T's numbers at `expected`.
template <typename T>
double ulps(T actual, long double expected) {
  const int exponent = std::max(std::ilogb(expected), std::numeric_limits<T>::min_exponent - 1);
  const long double ulp = std::ldexp(1.0L, exponent - (std::numeric_limits<T>::digits - 1));
  return static_cast<double>(std::fabs((static_cast<long double>(actual) - expected) / ulp));
}

double relative_error(double actual, long double expected) {
  return static_cast<double>(std::fabs((static_cast<long double>(actual) - expected) / expected));
}

TEST(Math, ExpF32HoldsItsBoundOverItsRange) {
  double worst = 0;
  constexpr std::uint32_t kStride = 1009 * kThinning;  // odd, so that all low bits occur
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (std::uint32_t magnitude = 0; magnitude < 0x42d00000u; magnitude += kStride) {
      const float x = std::bit_cast<float>(sign | magnitude);
      const float y = exp_f32(x);
      if (std::isinf(y)) {
        ASSERT_GT(x, 88.7228f);
        continue;
      }
      if (x < -103.5f) {
        ASSERT_LE(y, 0x1p-149f);
        continue;
      }
      worst = std::max(worst, ulps(y, std::exp(static_cast<long double>(x))));
    }
  }
  std::cout << "exp_f32: " << worst << " ulp\n";
  EXPECT_LE(worst, 1.01);
}

TEST(Math, ExpF32HandlesTheEnds) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(exp_f32(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(exp_f32(-200.0f), 0.0f);
  EXPECT_TRUE(std::isinf(exp_f32(89.0f)));
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isfinite(exp_f32(88.7228f)));
}

TEST(Math, ExpF64HoldsItsBoundOverItsRange) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> wide(-745.0, 709.7), narrow(-1.0, 1.0);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const double x : {wide(random), narrow(random)}) {
      worst = std::max(worst, ulps(exp_f64(x), std::exp(static_cast<long double>(x))));
    }
  }
  std::cout << "exp_f64: " << worst << " ulp\n";
  EXPECT_LE(worst, 1.01 + kReferenceError);
}

TEST(Math, ExpNegativeHoldsItsBound) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> wide(-708.0, 0.0), narrow(-1.0, 0.0);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const double x : {wide(random), narrow(random)}) {
      const auto expected = std::exp(static_cast<long double>(x));
      worst = std::max(worst, relative_error(exp_negative(x), expected));
    }
  }
  std::cout << "exp_negative: " << worst << "\n";
  EXPECT_LE(worst, 0x1p-41);
  EXPECT_EQ(exp_negative(0.0), 1.0);
  EXPECT_EQ(exp_negative(-0.0), 1.0);
  EXPECT_EQ(exp_negative(-1e300), exp_negative(-708.0));
  EXPECT_EQ(exp_negative(-kInfinity), exp_negative(-708.0));
}

TEST(Math, ExpF64HandlesTheEnds) {
  EXPECT_EQ(exp_f64(0.0), 1.0);
  EXPECT_EQ(exp_f64(kInfinity), kInfinity);
  EXPECT_EQ(exp_f64(-kInfinity), 0.0);
  EXPECT_EQ(exp_f64(709.7827128933841), kInfinity);
  EXPECT_TRUE(std::isfinite(exp_f64(709.7827128933840)));
  EXPECT_EQ(exp_f64(-746.0), 0.0);
  EXPECT_EQ(exp_f64(-745.1), 0x1p-1074);
  EXPECT_TRUE(std::isnan(exp_f64(kNaN)));
}

TEST(Math, LogF64IsWithinOneUlp) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-1074.0, 1023.9), near_one(0.4, 2.5),
      next_to_one(-1e-6, 1e-6);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const double x :
         {std::exp2(exponent(random)), near_one(random), 1.0 + next_to_one(random)}) {
      if (x != 1.0)
        worst = std::max(worst, ulps(log_f64(x), std::log(static_cast<long double>(x))));
    }
  }
  std::cout << "log_f64: " << worst << " ulp\n";
  EXPECT_LE(worst, 1.01 + kReferenceError);
}

TEST(Math, LogF64HandlesTheEnds) {
  EXPECT_EQ(log_f64(1.0), 0.0);
  EXPECT_EQ(log_f64(0.0), -kInfinity);
  EXPECT_EQ(log_f64(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(log_f64(-1.0)));
  EXPECT_TRUE(std::isnan(log_f64(kNaN)));
  EXPECT_LE(ulps(log_f64(0x1p-1074), std::log(0x1p-1074L)), 1.0 + kReferenceError);
  EXPECT_LE(ulps(log_f64(std::numeric_limits<double>::max()),
                 std::log(static_cast<long double>(std::numeric_limits<double>::max()))),
            1.0 + kReferenceError);
}

TEST(Math, PowF64IsExactToFifteenDigits) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> base(1e-3, 1e7), exponent(-40.0, 40.0);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double x = base(random), y = exponent(random);
    worst = std::max(worst, relative_error(pow_f64(x, y), std::pow(static_cast<long double>(x),
                                                                   static_cast<long double>(y))));
  }
  std::cout << "pow_f64: " << worst << " relative\n";
  EXPECT_LE(worst, 1e-15);
}

TEST(Math, PowF64MatchesRopeFrequencies) {
  for (const double base : {1e4, 5e5, 1e6, 1e7, 1.5e8}) {
    for (const int dimensions : {64, 80, 96, 128, 256, 512}) {
      for (int i = 0; i < dimensions / 2; ++i) {
        const double y = -2.0 * i / dimensions;
        EXPECT_LE(relative_error(pow_f64(base, y), std::pow(static_cast<long double>(base),
                                                            static_cast<long double>(y))),
                  4e-16);
      }
    }
  }
}

TEST(Math, PowF64HandlesTheEnds) {
  EXPECT_EQ(pow_f64(7.5, 0.0), 1.0);
  EXPECT_EQ(pow_f64(1.0, 1e300), 1.0);
  EXPECT_EQ(pow_f64(2.0, 10.0), 1024.0);
  EXPECT_EQ(pow_f64(2.0, 1e300), kInfinity);
  EXPECT_EQ(pow_f64(2.0, -1e300), 0.0);
  EXPECT_TRUE(std::isnan(pow_f64(0.0, 1.0)));
  EXPECT_TRUE(std::isnan(pow_f64(-1.0, 2.0)));
  EXPECT_TRUE(std::isnan(pow_f64(kNaN, 2.0)));
  EXPECT_TRUE(std::isnan(pow_f64(2.0, kInfinity)));
}

TEST(Math, SinAndCosHoldTheirBoundForRopeAngles) {
  std::mt19937_64 random(4);
  double worst = 0;
  for (const double limit : {1.0, 100.0, 1e6, 0x1p31}) {
    std::uniform_real_distribution<double> angle(-limit, limit);
    for (int i = 0; i < kSamples / 2; ++i) {
      const double x = angle(random);
      const auto wide = static_cast<long double>(x);
      worst = std::max(worst, static_cast<double>(std::fabs(sin_f64(x) - std::sin(wide))));
      worst = std::max(worst, static_cast<double>(std::fabs(cos_f64(x) - std::cos(wide))));
    }
  }
  std::cout << "sin_f64, cos_f64: " << worst << " absolute\n";
  EXPECT_LE(worst, 2.5e-16);
}

TEST(Math, SinAndCosStaySmallNextToMultiplesOfHalfPi) {
  double worst = 0;
  for (int n = -700'000; n <= 700'000; n += 7 * kThinning) {
    const double x = n * 0x1.921fb54442d18p0;
    const auto wide = static_cast<long double>(x);
    worst = std::max(worst, static_cast<double>(std::fabs(sin_f64(x) - std::sin(wide))));
    worst = std::max(worst, static_cast<double>(std::fabs(cos_f64(x) - std::cos(wide))));
  }
  EXPECT_LE(worst, 2.5e-16);
}

TEST(Math, SinAndCosRefuseAnglesTheyCannotReduce) {
  for (const double x : {0x1p31 * 1.01, -1e300, kInfinity, kNaN}) {
    EXPECT_TRUE(std::isnan(sin_f64(x)));
    EXPECT_TRUE(std::isnan(cos_f64(x)));
  }
  EXPECT_EQ(sin_f64(0.0), 0.0);
  EXPECT_EQ(cos_f64(0.0), 1.0);
}

// The same bits on every machine: values recorded once, from any of them.
TEST(Math, BitsAreTheSameEverywhere) {
  std::uint64_t digest = 0xcbf29ce484222325;
  const auto mix = [&](std::uint64_t bits) { digest = (digest ^ bits) * 0x100000001b3; };
  for (int i = -2000; i <= 2000; ++i) {
    const double x = i * 0.03125 + 0.001;
    mix(std::bit_cast<std::uint32_t>(exp_f32(static_cast<float>(x))));
    mix(std::bit_cast<std::uint64_t>(exp_f64(x)));
    mix(std::bit_cast<std::uint64_t>(log_f64(x + 70)));
    mix(std::bit_cast<std::uint64_t>(pow_f64(1e6, x / 64)));
    mix(std::bit_cast<std::uint64_t>(sin_f64(x * 9973)));
    mix(std::bit_cast<std::uint64_t>(cos_f64(x * 9973)));
  }
  EXPECT_EQ(digest, 7276653448943715116u);
}

}  // namespace
}  // namespace strata
