// Every format's dot product in the scalar vocabulary, against the plain sum in double precision of
// the weights and activations that are stored. Other vocabularies are held against this one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "device/cpu/kernels/products.h"
#include "device/cpu/simd/scalar.h"
#include "formats/activation.h"
#include "formats/all.h"
#include "formats/registry.h"

namespace strata {
namespace {

void quantize(const std::vector<float>& x, std::vector<F32Element>& out) { out = x; }
void quantize(const std::vector<float>& x, std::vector<Q8Block32>& out) {
  out.resize(x.size() / 32);
  quantize_q8x32(x.data(), static_cast<std::int64_t>(x.size()), out.data());
}
void quantize(const std::vector<float>& x, std::vector<Q8Block256>& out) {
  out.resize(x.size() / 256);
  quantize_q8x256(x.data(), static_cast<std::int64_t>(x.size()), out.data());
}

double value_of(F32Element block, int) { return block; }
double value_of(const Q8Block32& block, int i) { return double{block.scale} * block.q[i]; }
double value_of(const Q8Block256& block, int i) { return double{block.scale} * block.q[i]; }

// Eight weight rows, plain and interleaved, and four rows of activations.
template <class F>
struct Problem {
  using A = typename F::Activation;
  static constexpr int kActivationElements = activation_elements<A>();
  static constexpr int kActivationBlocks = F::kElements / kActivationElements;

  Problem(std::vector<std::uint8_t> rows, const std::vector<std::vector<float>>& x)
      : plain(std::move(rows)), group(plain.size()), blocks(plain.size() / (kLanes * F::kBytes)) {
    find_format(F::kId)->repack_group(plain.data(), static_cast<std::int64_t>(blocks * F::kBytes),
                                      group.data());
    for (std::size_t r = 0; r < x.size(); ++r) quantize(x[r], activations[r]);
  }

  // acc[r][lane] of the first R activation rows, starting from `start`.
  template <int R>
  std::array<std::array<float, kLanes>, R> run(float start = 0.0f) const {
    Scalar::F32 acc[1][R];
    for (auto& lanes : acc[0]) lanes = Scalar::broadcast(start);
    for (std::size_t b = 0; b < blocks; ++b) {
      const A* a[R];
      for (int r = 0; r < R; ++r) a[r] = &activations[r][b * kActivationBlocks];
      const Scalar::Weights w[1] = {group.data() + b * kLanes * F::kBytes};
      multiply_block<Scalar, F, 1, R>(w, a, acc);
    }
    std::array<std::array<float, kLanes>, R> out;
    for (int r = 0; r < R; ++r) Scalar::store(out[r].data(), acc[0][r]);
    return out;
  }

  // The kernel makes at most two fused additions per block of activations, each off by 2^-24 of
  // what has been added up. A product of scales, a sum made a float and the decoded weight it is
  // compared with are off by at most six more. With W the block's largest weight, code * scale and
  // offset taken apart reach no more than 4 W in any format here.
  void expect_exact() const {
    const auto got = run<4>();
    for (int r = 0; r < 4; ++r)
      for (int lane = 0; lane < kLanes; ++lane) {
        double sum = 0, reach = 0;
        for (std::size_t b = 0; b < blocks; ++b) {
          float w[F::kElements];
          F::decode(plain.data() + (lane * blocks + b) * F::kBytes, w);
          double largest = 0, activity = 0;
          for (int i = 0; i < F::kElements; ++i) {
            const double x =
                value_of(activations[r][b * kActivationBlocks + i / kActivationElements],
                         i % kActivationElements);
            sum += w[i] * x;
            largest = std::max(largest, std::fabs(double{w[i]}));
            activity += std::fabs(x);
          }
          reach += 4 * largest * activity;
        }
        const double limit =
            (2 * static_cast<double>(blocks * kActivationBlocks) + 6) * 0x1p-24 * reach;
        ASSERT_NEAR(got[r][lane], sum, limit) << "row " << r << ", lane " << lane;
      }
  }

  std::vector<std::uint8_t> plain, group;
  std::size_t blocks;
  std::array<std::vector<A>, 4> activations;
};

std::vector<float> normal_values(std::size_t n, float size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = size * normal(random);
  return out;
}

constexpr std::size_t kColumns = STRATA_EMULATED ? 512 : 2048;

std::vector<std::vector<float>> normal_activations() {
  std::vector<std::vector<float>> out;
  for (unsigned r = 0; r < 4; ++r) out.push_back(normal_values(kColumns, 3.0f, 100 + r));
  return out;
}

template <class F>
Problem<F> normal_problem(float size) {
  const auto x = normal_values(kLanes * kColumns, size, 5);
  std::vector<std::uint8_t> rows(kLanes * kColumns / F::kElements * F::kBytes);
  find_format(F::kId)->encode_row(x.data(), static_cast<std::int64_t>(x.size()), rows.data());
  return Problem<F>(std::move(rows), normal_activations());
}

template <class List>
struct TypesOf;
template <template <class...> class List, class... F>
struct TypesOf<List<F...>> {
  using Types = ::testing::Types<F...>;
};
template <class... F>
auto quantized(FormatList<F...>) {
  return std::tuple_cat(std::conditional_t<(F::kElements > 1), std::tuple<F>, std::tuple<>>{}...);
}
using QuantizedFormats = decltype(quantized(AllFormats{}));
struct FormatNames {
  template <class F>
  static std::string GetName(int) {
    return std::string(format_name(F::kId));
  }
};

template <class F>
class FormatKernel : public ::testing::Test {};
TYPED_TEST_SUITE(FormatKernel, TypesOf<AllFormats>::Types, FormatNames);

template <class F>
class QuantizedKernel : public ::testing::Test {};
TYPED_TEST_SUITE(QuantizedKernel, TypesOf<QuantizedFormats>::Types, FormatNames);

TYPED_TEST(FormatKernel, IsTheDotProductOfWhatIsStored) {
  normal_problem<TypeParam>(0.02f).expect_exact();
  normal_problem<TypeParam>(30.0f).expect_exact();
}

TYPED_TEST(FormatKernel, IsTheSameBitsForAnyNumberOfActivationRows) {
  const auto problem = normal_problem<TypeParam>(0.02f);
  const auto one = problem.template run<1>();
  const auto two = problem.template run<2>();
  const auto three = problem.template run<3>();
  const auto four = problem.template run<4>();
  const auto same = [](const auto& a, const auto& b, int rows) {
    return std::memcmp(a.data(), b.data(), rows * sizeof a[0]) == 0;
  };
  EXPECT_TRUE(same(one, four, 1));
  EXPECT_TRUE(same(two, four, 2));
  EXPECT_TRUE(same(three, four, 3));
}

TYPED_TEST(FormatKernel, AZeroBlockAddsNothing) {
  const auto problem = normal_problem<TypeParam>(0.0f);
  const auto got = problem.template run<1>(1.5f);
  for (const float lane : got[0]) EXPECT_EQ(lane, 1.5f);
}

// A block whose factors are one, its 6- and 8-bit scales and its codes made of one byte each.
template <class F>
std::vector<std::uint8_t> uniform_block(std::uint8_t scale, std::uint8_t code) {
  std::vector<std::uint8_t> block;
  for (const Field field : F::kFields) {
    if (field.chunk == 2)
      block.insert(block.end(), {0x00, 0x3c});
    else
      block.insert(block.end(), field.bytes, field.chunk == 1 ? scale : code);
  }
  return block;
}

template <class F>
bool is_finite(const std::vector<std::uint8_t>& block) {
  float w[F::kElements];
  F::decode(block.data(), w);
  return std::ranges::all_of(w, [](float x) { return std::isfinite(x); });
}

// An integer that overflows, or an offset that is wrong, misses by far more than the bound. Scales
// that are floats of their own may leave nothing finite to compare.
TYPED_TEST(QuantizedKernel, HoldsAtTheEndsOfItsIntegers) {
  for (const int scale : {0x00, 0x7f, 0x80, 0xff})
    for (const int code : {0x00, 0x7f, 0x80, 0xff})
      for (const float activation : {127.0f, -127.0f}) {
        const auto block = uniform_block<TypeParam>(static_cast<std::uint8_t>(scale),
                                                    static_cast<std::uint8_t>(code));
        if (!is_finite<TypeParam>(block)) continue;
        std::vector<std::uint8_t> rows;
        for (int lane = 0; lane < kLanes; ++lane)
          rows.insert(rows.end(), block.begin(), block.end());
        const std::vector<float> x(TypeParam::kElements, activation);
        Problem<TypeParam>(rows, {x, x, x, x}).expect_exact();
      }
}

}  // namespace
}  // namespace strata
