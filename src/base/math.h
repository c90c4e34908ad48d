// Elementary functions that give the same bits on every machine: plain IEEE operations in a written
// order and fma only where spelled, as libm picks its code by processor. Reductions after Cody and
// Waite, "Software Manual for the Elementary Functions" (1980); polynomials are Taylor series.
// One ulp is the spacing of results; bounds are measured in math_test.cc.
// REQUIRES: rounding to nearest.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace strata {

namespace math_internal {

// c[0] + c[1] x + c[2] x^2 + ...
template <typename T, std::size_t N>
inline T horner(const std::array<T, N>& c, T x) {
  T sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = std::fma(sum, x, c[i]);
  return sum;
}

// The nearest integer. REQUIRES: |x| < 2^22 for float, 2^51 for double.
inline float nearest(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
inline double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// 2^n. REQUIRES: n in the range of normal numbers.
inline float power_of_two_f32(std::int32_t n) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}
inline double power_of_two_f64(std::int32_t n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

// ln 2 in two parts; the first ends in zeros, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42fefa38p-1;
constexpr double kLn2Low = 0x1.ef35793c7673p-45;

// A number as an unevaluated sum, low being small beside high.
struct DoubleDouble {
  double high;
  double low;
};

// e^(x.high + x.low); NaN stays NaN.
inline double exp(DoubleDouble x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (x.high > 709.79) return kInfinity;
  if (x.high < -745.14) return 0.0;
  if (std::isnan(x.high)) return x.high;
  const double n = nearest(x.high * 0x1.71547652b82fep0);
  const double r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, x.high)) + x.low;
  static constexpr std::array<double, 12> kTail = {
      1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
      1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
      1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  const double y = 1.0 + std::fma(horner(kTail, r), r * r, r);
  // In two factors, as 2^n alone may not be a normal number.
  const auto exponent = static_cast<std::int32_t>(n);
  return y * power_of_two_f64(exponent / 2) * power_of_two_f64(exponent - exponent / 2);
}

// ln x, relative error below 2^-60. REQUIRES: x positive, finite.
inline DoubleDouble log(double x) {
  std::int32_t subnormal_shift = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    subnormal_shift = 54;
  }
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)): shifted by sqrt(1/2), the exponent field rounds so.
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const auto shifted = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) - kSqrtHalf);
  const std::int64_t k = shifted >> 52;
  const double m = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) -
                                         (static_cast<std::uint64_t>(k) << 52));
  // ln m = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1), carried in two parts.
  const double numerator = m - 1.0;
  const double denominator = m + 1.0;
  const double denominator_low = numerator - (denominator - 2.0);
  const double s = numerator / denominator;
  const double s_low = (std::fma(-s, denominator, numerator) - s * denominator_low) / denominator;
  static constexpr std::array<double, 11> kTail = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,
                                                   2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                                   2.0 / 19, 2.0 / 21, 2.0 / 23};
  const double s2 = s * s;
  const double tail = std::fma(horner(kTail, s2), s2 * s, 2.0 * s_low);
  const auto exponent = static_cast<double>(k - subnormal_shift);
  // Knuth's two-sum of k ln 2 and 2 s keeps what the addition rounds off.
  const double a = exponent * kLn2High;
  const double b = 2.0 * s;
  const double high = a + b;
  const double a_part = high - b;
  const double rounded_off = (a - a_part) + (b - (high - a_part));
  const double low = rounded_off + std::fma(exponent, kLn2Low, tail);
  const double sum = high + low;
  return {sum, low - (sum - high)};
}

// x - n pi/2 for the nearest n. The first fma is exact: its result has no bit below 2^-53.
struct QuarterTurns {
  double rest;            // in [-pi/4, pi/4] up to rounding
  std::int64_t quarters;  // n
};
inline QuarterTurns reduce_angle(double x) {
  const double n = nearest(x * 0x1.45f306dc9c883p-1);
  const double rest = std::fma(-n, 0x1.1a62633145c07p-54, std::fma(-n, 0x1.921fb54442d18p0, x));
  return {rest, static_cast<std::int64_t>(n)};
}

// sin(r + quarters pi/2)
inline double sin_of(double r, std::int64_t quarters) {
  const double r2 = r * r;
  double y;
  if (quarters & 1) {
    static constexpr std::array<double, 7> kCos = {
        1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
    y = 1.0 + std::fma(horner(kCos, r2), r2 * r2, -0.5 * r2);
  } else {
    static constexpr std::array<double, 8> kSin = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    y = std::fma(horner(kSin, r2), r2 * r, r);
  }
  return quarters & 2 ? -y : y;
}

// False also for NaN.
inline bool angle_in_range(double x) { return std::fabs(x) <= 0x1p31; }

}  // namespace math_internal

// e^x within 1.01 ulp, subnormal results included; 0 and infinity beyond the range; NaN stays NaN.
inline float exp_f32(float x) {
  if (x > 88.73f) return std::numeric_limits<float>::infinity();
  if (x < -103.98f) return 0.0f;
  if (std::isnan(x)) return x;
  const float n = math_internal::nearest(x * 0x1.715476p0f);
  const float r = std::fma(-n, -0x1.05c61p-29f, std::fma(-n, 0x1.62e43p-1f, x));
  static constexpr std::array<float, 6> kTail = {1.0f / 2,   1.0f / 6,   1.0f / 24,
                                                 1.0f / 120, 1.0f / 720, 1.0f / 5040};
  const float y = 1.0f + std::fma(math_internal::horner(kTail, r), r * r, r);
  const auto exponent = static_cast<std::int32_t>(n);
  return y * math_internal::power_of_two_f32(exponent / 2) *
         math_internal::power_of_two_f32(exponent - exponent / 2);
}

// e^x within 1.01 ulp, subnormal results included; 0 and infinity beyond the range; NaN stays NaN.
inline double exp_f64(double x) { return math_internal::exp({x, 0.0}); }

// e^x for x <= 0 with a relative error below 2^-41; below -708 as at -708. Without a branch or a
// fused multiply-add, so that a loop over it runs in vectors on any machine. REQUIRES: x <= 0.
inline double exp_negative(double x) {
  constexpr double kShift = 0x1.8p52;  // its sum with an integer holds that in the low bits
  x = x < -708.0 ? -708.0 : x;
  const double shifted = x * 0x1.71547652b82fep0 + kShift;
  const double n = shifted - kShift;
  const double r = (x - n * math_internal::kLn2High) - n * math_internal::kLn2Low;
  double sum = 1.0 / 3628800;
  for (const double coefficient : {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                                   1.0 / 24, 1.0 / 6, 1.0 / 2, 1.0, 1.0}) {
    sum = sum * r + coefficient;
  }
  const std::uint64_t exponent = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  return sum * std::bit_cast<double>(exponent);
}

// ln x within 1 ulp; -infinity at 0, NaN below it.
inline double log_f64(double x) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(x)) return x;
  return math_internal::log(x).high;
}

// x^y for finite x > 0 and finite y, within 1e-15 of the result; NaN for other arguments.
inline double pow_f64(double x, double y) {
  if (!(x > 0) || std::isinf(x) || !std::isfinite(y)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const math_internal::DoubleDouble log = math_internal::log(x);
  const double high = y * log.high;
  if (std::fabs(high) > 800) return high > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return math_internal::exp({high, std::fma(y, log.low, std::fma(y, log.high, -high))});
}

// sin x and cos x, x in radians, absolute error below 2.5e-16; NaN beyond |x| = 2^31.
inline double sin_f64(double x) {
  if (!math_internal::angle_in_range(x)) return std::numeric_limits<double>::quiet_NaN();
  const math_internal::QuarterTurns turns = math_internal::reduce_angle(x);
  return math_internal::sin_of(turns.rest, turns.quarters);
}
inline double cos_f64(double x) {
  if (!math_internal::angle_in_range(x)) return std::numeric_limits<double>::quiet_NaN();
  const math_internal::QuarterTurns turns = math_internal::reduce_angle(x);
  return math_internal::sin_of(turns.rest, turns.quarters + 1);
}

}  // namespace strata
