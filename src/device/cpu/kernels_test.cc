// Every ISA's kernels against the scalar ones, bit for bit, and against plain double arithmetic.
#include "device/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>

#include "device/cpu/isa_select.h"
#include "device/cpu/kernels/tile_table.h"
#include "device/cpu/simd/plain_tiles.h"
#include "device/cpu/test_support.h"
#include "formats/activation.h"
#include "formats/all.h"
#include "formats/registry.h"

namespace strata {
namespace {

using testing::expect_same_bits;
using testing::noise;

// Matrix products in tiles, as any processor can do them.
const KernelTable& plain_tile_kernels() {
  static const KernelTable kernels =
      with_tiles(make_tile_table<ScalarTiles, kScalarKernels>("plain_tiles"), kScalarKernels);
  return kernels;
}

std::vector<const KernelTable*> kernels_and_tiles() {
  auto tables = testing::all_kernels();
  tables.push_back(&plain_tile_kernels());
  return tables;
}

// Blocks at the ends of a format's integers: f16 factors are one, every byte of 6- and 8-bit scales
// is `scale`, every byte of codes `code`.
template <class F>
void fill_extreme(std::vector<std::uint8_t>& rows, std::uint8_t scale, std::uint8_t code) {
  for (std::size_t at = 0; at < rows.size(); at += F::kBytes) {
    std::size_t byte = at;
    for (const Field field : F::kFields)
      for (int i = 0; i < field.bytes; ++i, ++byte)
        rows[byte] = field.chunk == 2 ? (i == 0 ? 0x00 : 0x3c) : (field.chunk == 1 ? scale : code);
  }
}
template <class... F>
void fill_extreme(FormatId id, std::vector<std::uint8_t>& rows, std::uint8_t scale,
                  std::uint8_t code, FormatList<F...>) {
  ((F::kId == id ? fill_extreme<F>(rows, scale, code) : void()), ...);
}

// Some encoders take long, so weights repeat, though not with the cells that rows are read in.
constexpr std::int64_t kDistinctWeights = (STRATA_SLOW ? 7 : 37) * 256;

// A matrix of random weights: plain rows, the interleaved form, and its decoded values.
struct Matrix {
  const FormatOps* ops;
  std::int64_t rows, columns, row_size;
  std::vector<std::uint8_t> interleaved;
  std::vector<float> values;

  Matrix(FormatId id, std::int64_t r, std::int64_t c, std::uint32_t seed)
      : ops(find_format(id)), rows(r), columns(c), row_size(row_bytes(ops->info, c)) {
    const auto weights = noise(kDistinctWeights, seed);
    std::vector<std::uint8_t> encoded(row_bytes(ops->info, kDistinctWeights));
    std::vector<float> decoded(weights.size());
    ops->encode_row(weights.data(), kDistinctWeights, encoded.data());
    ops->decode_row(encoded.data(), kDistinctWeights, decoded.data());
    std::vector<std::uint8_t> plain(static_cast<std::size_t>(r * row_size));
    values.resize(static_cast<std::size_t>(r * c));
    for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = encoded[i % encoded.size()];
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = decoded[i % decoded.size()];
    interleaved.resize(plain.size());
    repack_rows(*ops, plain.data(), r, row_size, interleaved.data());
  }
};

// Activation rows in the form a format asks for, and the values that form stands for.
struct Activations {
  std::int64_t columns;
  std::vector<float> given;
  std::vector<std::vector<std::uint8_t>> rows;
  std::vector<const void*> pointers;
  std::vector<double> values;

  Activations(const KernelTable& kernels, ActivationKind kind, std::int64_t count, std::int64_t c,
              std::uint32_t seed)
      : columns(c), given(noise(static_cast<std::size_t>(count * c), seed)) {
    for (std::int64_t i = 0; i < count; ++i) add_row(kernels, kind, given.data() + i * c);
    for (const auto& row : rows) pointers.push_back(row.data());
  }

  void add_row(const KernelTable& kernels, ActivationKind kind, const float* x) {
    std::vector<std::uint8_t> row(static_cast<std::size_t>(columns) * 4 + 64);
    if (kind == ActivationKind::kF32) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(x);
      std::copy(bytes, bytes + columns * 4, row.begin());
      values.insert(values.end(), x, x + columns);
    } else if (kind == ActivationKind::kQ8x32) {
      kernels.quantize_q8x32(x, columns, row.data());
      const auto* blocks = reinterpret_cast<const Q8Block32*>(row.data());
      for (std::int64_t i = 0; i < columns; ++i)
        values.push_back(double{blocks[i / 32].scale} * blocks[i / 32].q[i % 32]);
    } else {
      kernels.quantize_q8x256(x, columns, row.data());
      const auto* blocks = reinterpret_cast<const Q8Block256*>(row.data());
      for (std::int64_t i = 0; i < columns; ++i)
        values.push_back(double{blocks[i / 256].scale} * blocks[i / 256].q[i % 256]);
    }
    rows.push_back(std::move(row));
  }
};

// In two parts, the second of which starts at row `cut`.
std::vector<float> multiply(const KernelTable& kernels, const Matrix& m, const Activations& a,
                            std::int64_t cut = 0) {
  const auto count = static_cast<std::int64_t>(a.pointers.size());
  std::vector<float> out(static_cast<std::size_t>(count * m.rows), std::nanf(""));
  std::vector<float*> outs;
  for (std::int64_t i = 0; i < count; ++i) outs.push_back(out.data() + i * m.rows);
  const MatMulKernel kernel = kernels.matmul[static_cast<std::size_t>(m.ops->info.id)];
  kernel({m.interleaved.data(), m.columns, m.rows, 0, cut, a.pointers.data(), outs.data(), count});
  kernel({m.interleaved.data(), m.columns, m.rows, cut, m.rows, a.pointers.data(), outs.data(),
          count});
  return out;
}

class EveryFormat : public ::testing::TestWithParam<FormatId> {};

// Row counts around the groups of 8 and cells of 16, activation counts past the tiles, columns past
// a segment.
TEST_P(EveryFormat, MatMulGivesTheSameBitsOnEveryIsa) {
  const auto* ops = find_format(GetParam());
  for (const std::int64_t rows : {1, 7, 8, 29})
    for (const std::int64_t columns : {256, 4096 + 512}) {
      const Matrix m(GetParam(), rows, columns, 7);
      for (const std::int64_t count : {1, 2, 3, 4, 5, 11}) {
        const Activations a(kScalarKernels, ops->activation, count, columns, 11);
        const auto expected = multiply(kScalarKernels, m, a);
        for (const KernelTable* kernels : kernels_and_tiles()) {
          SCOPED_TRACE(kernels->name);
          expect_same_bits(multiply(*kernels, m, a), expected);
        }
      }
    }
}

// Enough rows for panels, more than one of them, in ranges as two threads share them.
TEST_P(EveryFormat, MatMulOfManyRowsGivesTheSameBitsOnEveryIsa) {
  const auto* ops = find_format(GetParam());
  const Matrix m(GetParam(), 83, 768, 7);
  const Activations a(kScalarKernels, ops->activation, 131, m.columns, 11);
  const auto expected = multiply(kScalarKernels, m, a);
  for (const KernelTable* kernels : kernels_and_tiles()) {
    SCOPED_TRACE(kernels->name);
    expect_same_bits(multiply(*kernels, m, a, 0), expected);
    expect_same_bits(multiply(*kernels, m, a, 72), expected);
  }
}

// Tiles of as many rows as there can be, whole and in part.
TEST_P(EveryFormat, MatMulGivesTheSameBitsForEveryNumberOfRows) {
  constexpr std::int64_t kMost = STRATA_SLOW ? 19 : 67;
  const Matrix m(GetParam(), 9, 256, 7);
  Activations a(kScalarKernels, find_format(GetParam())->activation, kMost, m.columns, 11);
  const auto pointers = a.pointers;
  const auto expected = multiply(kScalarKernels, m, a);
  for (const KernelTable* kernels : kernels_and_tiles())
    for (std::int64_t count = 1; count <= kMost; ++count) {
      SCOPED_TRACE(fmt::format("{}, {} rows", kernels->name, count));
      a.pointers.assign(pointers.begin(), pointers.begin() + count);
      expect_same_bits(multiply(*kernels, m, a),
                       {expected.begin(), expected.begin() + count * m.rows});
    }
}

// Only a vector kernel can overflow where the scalar one has 32 bits.
TEST_P(EveryFormat, MatMulGivesTheSameBitsAtTheEndsOfTheIntegers) {
  const auto* ops = find_format(GetParam());
  Matrix m(GetParam(), 8, 512, 7);
  for (const int scale : {0x00, 0x7f, 0x80, 0xff})
    for (const int code : {0x00, 0x7f, 0x80, 0xff})
      for (const float value : {127.0f, -127.0f}) {
        std::vector<std::uint8_t> plain(m.interleaved.size());
        fill_extreme(GetParam(), plain, static_cast<std::uint8_t>(scale),
                     static_cast<std::uint8_t>(code), AllFormats{});
        repack_rows(*ops, plain.data(), m.rows, m.row_size, m.interleaved.data());
        Activations a(kScalarKernels, ops->activation, 0, m.columns, 1);
        const std::vector<float> x(512, value);
        for (int i = 0; i < 5; ++i) a.add_row(kScalarKernels, ops->activation, x.data());
        for (const auto& row : a.rows) a.pointers.push_back(row.data());
        const auto expected = multiply(kScalarKernels, m, a);
        for (const KernelTable* kernels : kernels_and_tiles())
          expect_same_bits(multiply(*kernels, m, a), expected);
      }
}

TEST_P(EveryFormat, MatMulOfOneRowEqualsTheSameRowInABatch) {
  const auto* ops = find_format(GetParam());
  const Matrix m(GetParam(), 24, 4096 + 256, 3);
  for (const KernelTable* kernels : kernels_and_tiles()) {
    const Activations all(*kernels, ops->activation, 7, m.columns, 5);
    const auto batch = multiply(*kernels, m, all);
    for (std::size_t i = 0; i < 7; ++i) {
      Activations one = all;
      one.pointers = {all.pointers[i]};
      const auto alone = multiply(*kernels, m, one);
      expect_same_bits(alone, {batch.begin() + static_cast<std::ptrdiff_t>(i * 24),
                               batch.begin() + static_cast<std::ptrdiff_t>(i * 24 + 24)});
    }
  }
}

// Each block contributes at most three rounded products and two rounded adds, or four of each for
// NVFP4, of terms bounded by the sum of magnitudes; elements count where a block is one element.
TEST_P(EveryFormat, MatMulIsWithinTheDerivedBoundOfDoubleArithmetic) {
  const auto* ops = find_format(GetParam());
  const Matrix m(GetParam(), 16, 4096 + 256, 23);
  const Activations a(kScalarKernels, ops->activation, 3, m.columns, 29);
  const auto out = multiply(kScalarKernels, m, a);
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t row = 0; row < m.rows; ++row) {
      double exact = 0, magnitude = 0, largest = 0;
      for (std::int64_t i = 0; i < m.columns; ++i) {
        const double w = m.values[static_cast<std::size_t>(row * m.columns + i)];
        const double x = a.values[static_cast<std::size_t>(r * m.columns + i)];
        exact += w * x;
        magnitude += std::fabs(w * x);
        largest = std::max(largest, std::fabs(w) * std::fabs(x));
      }
      const double blocks = static_cast<double>(m.columns) / ops->info.block_elements;
      // Formats with an offset add and subtract a common part up to 32 times a code's step.
      const double bound = (blocks + 8) * 0x1p-24 * (magnitude * 4 + largest);
      EXPECT_NEAR(out[static_cast<std::size_t>(r * m.rows + row)], exact, bound);
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, ::testing::ValuesIn(ids_of(AllFormats{})),
                         [](const auto& p) { return std::string(format_name(p.param)); });

TEST(Kernels, EveryIsaIsChosenByItsNameOrRefusedWithThoseThatRun) {
  for (const std::string& name : isa_names()) {
    const auto isa = isa_by_name(name);
    ASSERT_TRUE(isa.has_value());
    const auto kernels = select_kernels(*isa);
    const auto runnable = runnable_isas();
    EXPECT_EQ(kernels.ok(), *isa == Isa::kBest || std::ranges::count(runnable, *isa) == 1) << name;
    if (!kernels.ok()) {
      EXPECT_NE(kernels.status().message().find("scalar"), std::string::npos);
    } else if (*isa != Isa::kBest) {
      EXPECT_EQ((*kernels)->name, name);
    }
  }
  EXPECT_FALSE(isa_by_name("sve9").has_value());
}

TEST(Kernels, EveryHalfIsReadTheSameOnEveryIsa) {
  constexpr std::int64_t kHalves = 1 << 16;
  std::vector<std::uint16_t> halves(kHalves);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  const float one = 1.0f;
  const void* const activations = &one;
  for (const FormatId id : {FormatId::F16, FormatId::BF16}) {
    std::vector<float> first;
    for (const KernelTable* kernels : kernels_and_tiles()) {
      std::vector<float> out(kHalves);
      float* const target = out.data();
      kernels->matmul[static_cast<std::size_t>(id)](
          {reinterpret_cast<const std::uint8_t*>(halves.data()), 1, kHalves, 0, kHalves,
           &activations, &target, 1});
      if (first.empty()) first = out;
      SCOPED_TRACE(kernels->name);
      expect_same_bits(out, first);
    }
  }
}

TEST(Kernels, QuantizedActivationsMatchTheReferenceOnEveryIsa) {
  auto x = noise(1024, 1);
  for (std::size_t i = 0; i < 256; ++i) x[i] = 0;          // an all-zero block
  for (std::size_t i = 256; i < 512; ++i) x[i] *= 1e-38f;  // too small for a finite inverse
  for (std::size_t i = 512; i < 768; ++i) x[i] *= 1e30f;
  std::vector<Q8Block32> small(32);
  std::vector<Q8Block256> large(4);
  quantize_q8x32(x.data(), 1024, small.data());
  quantize_q8x256(x.data(), 1024, large.data());
  const auto bytes_of = [](const auto& blocks) { return std::as_bytes(std::span(blocks)); };
  for (const KernelTable* kernels : kernels_and_tiles()) {
    std::vector<Q8Block32> got_small(32);
    std::vector<Q8Block256> got_large(4);
    kernels->quantize_q8x32(x.data(), 1024, got_small.data());
    kernels->quantize_q8x256(x.data(), 1024, got_large.data());
    EXPECT_TRUE(std::ranges::equal(bytes_of(small), bytes_of(got_small)));
    EXPECT_TRUE(std::ranges::equal(bytes_of(large), bytes_of(got_large)));
  }
}

TEST(Kernels, ANotANumberPoisonsItsBlockInsteadOfVanishing) {
  auto x = noise(256, 1);
  x[100] = std::nanf("");
  for (const KernelTable* kernels : kernels_and_tiles()) {
    std::vector<Q8Block32> small(8);
    Q8Block256 large;
    kernels->quantize_q8x32(x.data(), 256, small.data());
    kernels->quantize_q8x256(x.data(), 256, &large);
    EXPECT_TRUE(std::isnan(small[3].scale));
    EXPECT_TRUE(std::isnan(large.scale));
  }
}

TEST(Kernels, RowFunctionsMatchDoubleArithmeticAndEachOther) {
  for (const std::int64_t n : {1, 7, 8, 61, 576}) {
    const auto size = static_cast<std::size_t>(n);
    const auto x = noise(size, 2, 4.0f), w = noise(size, 3, 4.0f);
    std::vector<float> first_norm, first_silu, first_gelu, first_sigmoid, first_clamped;
    for (const KernelTable* kernels : kernels_and_tiles()) {
      std::vector<float> norm(size), silu(size), gelu(size), sigmoid(size), clamped(size);
      kernels->rms_norm(x.data(), w.data(), 1e-5f, n, norm.data());
      kernels->gate_silu(x.data(), w.data(), n, silu.data());
      kernels->gate_gelu_tanh(x.data(), w.data(), n, gelu.data());
      kernels->gate_sigmoid(x.data(), w.data(), n, sigmoid.data());
      kernels->gate_clamped_swiglu(x.data(), w.data(), n, clamped.data());
      double squares = 0;
      for (const float v : x) squares += double{v} * v;
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
      for (std::size_t i = 0; i < size; ++i) {
        const double v = x[i], u = w[i];
        EXPECT_NEAR(norm[i], v * inverse * u, 2e-6 * std::fabs(v * inverse * u) + 1e-12);
        EXPECT_NEAR(silu[i], v / (1 + std::exp(-v)) * u, 2e-6 * std::fabs(v * u));
        const double z = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
        EXPECT_NEAR(gelu[i], 0.5 * v * (1 + std::tanh(z)) * u, 4e-6 * std::fabs(v * u));
        EXPECT_NEAR(sigmoid[i], u / (1 + std::exp(-v)), 2e-6 * std::fabs(u));
        const double g = std::min(v, 7.0), linear = std::clamp(u, -7.0, 7.0) + 1;
        EXPECT_NEAR(clamped[i], g / (1 + std::exp(-1.702 * g)) * linear,
                    2e-6 * std::fabs(g * linear) + 1e-12);
      }
      if (kernels == &kScalarKernels) {
        first_norm = norm, first_silu = silu, first_gelu = gelu;
        first_sigmoid = sigmoid, first_clamped = clamped;
      }
      expect_same_bits(norm, first_norm);
      expect_same_bits(silu, first_silu);
      expect_same_bits(gelu, first_gelu);
      expect_same_bits(sigmoid, first_sigmoid);
      expect_same_bits(clamped, first_clamped);
    }
  }
}

TEST(Kernels, SoftcapIsCapTimesTanh) {
  for (const KernelTable* kernels : kernels_and_tiles()) {
    std::vector<float> x = {-1e30f, -80, -3, -0.01f, 0, 0.01f, 3, 80, 1e30f, 5};
    auto y = x;
    kernels->softcap(y.data(), 30.0f, 10);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], 30.0 * std::tanh(double{x[i]} / 30.0), 2e-5);
  }
}

}  // namespace
}  // namespace strata
