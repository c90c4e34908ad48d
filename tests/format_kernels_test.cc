// Every format's scalar kernel against the plain sum in double precision of the weights and
// activations that are stored. Other vocabularies are held against this one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/cpu/kernels.h"
#include "formats/activation.h"
#include "formats/all.h"
#include "formats/registry.h"

namespace strata {
namespace {

// A row of activations as the kernel reads it, and what its numbers stand for.
struct Activations {
  std::vector<std::uint8_t> stored;
  std::vector<double> values;
};

template <class Block, class Quantize>
Activations quantized(const std::vector<float>& x, int elements, Quantize quantize) {
  std::vector<Block> blocks(x.size() / static_cast<std::size_t>(elements));
  quantize(x.data(), static_cast<std::int64_t>(x.size()), blocks.data());
  Activations out;
  for (const Block& block : blocks)
    for (int i = 0; i < elements; ++i) out.values.push_back(double{block.scale} * block.q[i]);
  out.stored.resize(blocks.size() * sizeof(Block));
  std::memcpy(out.stored.data(), blocks.data(), out.stored.size());
  return out;
}

Activations stored_as(ActivationKind kind, const std::vector<float>& x) {
  switch (kind) {
    case ActivationKind::kQ8x32: return quantized<Q8Block32>(x, 32, quantize_q8x32);
    case ActivationKind::kQ8x256: return quantized<Q8Block256>(x, 256, quantize_q8x256);
    case ActivationKind::kF32: break;
  }
  Activations out{std::vector<std::uint8_t>(x.size() * 4), {x.begin(), x.end()}};
  std::memcpy(out.stored.data(), x.data(), out.stored.size());
  return out;
}

int elements_of(ActivationKind kind) {
  return kind == ActivationKind::kF32 ? 1 : kind == ActivationKind::kQ8x32 ? 32 : 256;
}

// Eight weight rows, plain and interleaved, and rows of activations.
struct Problem {
  Problem(FormatId id, std::vector<std::uint8_t> rows, const std::vector<std::vector<float>>& x)
      : ops(*find_format(id)), plain(std::move(rows)), group(plain.size()) {
    ops.repack_group(plain.data(), static_cast<std::int64_t>(plain.size() / kLanes), group.data());
    for (const auto& row : x) activations.push_back(stored_as(ops.activation, row));
  }

  std::int64_t columns() const { return static_cast<std::int64_t>(activations[0].values.size()); }

  // out[r][lane] of the first `count` activation rows.
  std::vector<std::array<float, kLanes>> run(std::size_t count) const {
    std::vector<std::array<float, kLanes>> out(count);
    std::vector<const void*> in;
    std::vector<float*> results;
    for (std::size_t r = 0; r < count; ++r) {
      in.push_back(activations[r].stored.data());
      results.push_back(out[r].data());
    }
    kScalarKernels.matmul[static_cast<std::size_t>(ops.info.id)](
        {group.data(), columns(), kLanes, 0, kLanes, in.data(), results.data(),
         static_cast<std::int64_t>(count)});
    return out;
  }

  // The kernel makes at most two fused additions per block of activations, each off by 2^-24 of
  // what has been added up. A product of scales, a sum made a float and the decoded weight it is
  // compared with are off by at most six more. With W the block's largest weight, code * scale and
  // offset taken apart reach no more than 4 W in any format here.
  void expect_exact() const {
    const auto got = run(activations.size());
    const auto n = static_cast<std::size_t>(columns());
    const auto block = static_cast<std::size_t>(ops.info.block_elements);
    const double blocks = static_cast<double>(n) / elements_of(ops.activation);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::vector<float> w(n);
      ops.decode_row(plain.data() + lane * (plain.size() / kLanes), columns(), w.data());
      for (std::size_t r = 0; r < activations.size(); ++r) {
        const std::vector<double>& x = activations[r].values;
        double sum = 0, reach = 0;
        for (std::size_t first = 0; first < n; first += block) {
          double largest = 0, activity = 0;
          for (std::size_t i = first; i < first + block; ++i) {
            sum += w[i] * x[i];
            largest = std::max(largest, std::fabs(double{w[i]}));
            activity += std::fabs(x[i]);
          }
          reach += 4 * largest * activity;
        }
        const double limit = (2 * blocks + 6) * 0x1p-24 * reach;
        ASSERT_NEAR(got[r][lane], sum, limit) << "row " << r << ", lane " << lane;
      }
    }
  }

  const FormatOps& ops;
  std::vector<std::uint8_t> plain, group;
  std::vector<Activations> activations;
};

std::vector<float> normal_values(std::size_t n, float size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = size * normal(random);
  return out;
}

constexpr std::size_t kColumns = STRATA_SLOW ? 512 : 2048;

std::vector<std::vector<float>> normal_activations() {
  std::vector<std::vector<float>> out;
  for (unsigned r = 0; r < 4; ++r) out.push_back(normal_values(kColumns, 3.0f, 100 + r));
  return out;
}

Problem normal_problem(FormatId id, float size) {
  const FormatOps& ops = *find_format(id);
  const auto x = normal_values(kLanes * kColumns, size, 5);
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(kLanes * row_bytes(ops.info, kColumns)));
  ops.encode_row(x.data(), static_cast<std::int64_t>(x.size()), rows.data());
  return Problem(id, std::move(rows), normal_activations());
}

class FormatKernel : public ::testing::TestWithParam<FormatId> {};
INSTANTIATE_TEST_SUITE_P(Formats, FormatKernel, ::testing::ValuesIn(ids_of(AllFormats{})),
                         [](const auto& tested) { return std::string(format_name(tested.param)); });

std::vector<FormatId> quantized_ids() {
  std::vector<FormatId> ids;
  for (const FormatId id : ids_of(AllFormats{}))
    if (find_format(id)->info.block_elements > 1) ids.push_back(id);
  return ids;
}

class QuantizedKernel : public FormatKernel {};
INSTANTIATE_TEST_SUITE_P(Formats, QuantizedKernel, ::testing::ValuesIn(quantized_ids()),
                         [](const auto& tested) { return std::string(format_name(tested.param)); });

TEST_P(FormatKernel, IsTheDotProductOfWhatIsStored) {
  normal_problem(GetParam(), 0.02f).expect_exact();
  normal_problem(GetParam(), 30.0f).expect_exact();
}

TEST_P(FormatKernel, IsTheSameBitsForAnyNumberOfActivationRows) {
  const Problem problem = normal_problem(GetParam(), 0.02f);
  const auto four = problem.run(4);
  for (std::size_t count = 1; count < 4; ++count) {
    const auto fewer = problem.run(count);
    EXPECT_EQ(std::memcmp(fewer.data(), four.data(), count * sizeof four[0]), 0) << count;
  }
}

TEST_P(FormatKernel, ZeroWeightsGiveZero) {
  const auto got = normal_problem(GetParam(), 0.0f).run(1);
  for (const float lane : got[0]) EXPECT_EQ(lane, 0.0f);
}

// A block whose factors are one, its 6- and 8-bit scales and its codes made of one byte each.
template <class F>
std::vector<std::uint8_t> uniform_block_of(std::uint8_t scale, std::uint8_t code) {
  std::vector<std::uint8_t> block;
  for (const Field field : F::kFields)
    for (int i = 0; i < field.bytes; ++i)
      block.push_back(field.chunk == 2 ? (i == 0 ? 0x00 : 0x3c) : field.chunk == 1 ? scale : code);
  return block;
}

using MakeBlock = std::vector<std::uint8_t> (*)(std::uint8_t scale, std::uint8_t code);

template <class... F>
MakeBlock uniform_block(FormatList<F...>, FormatId id) {
  MakeBlock found = nullptr;
  ((F::kId == id ? void(found = uniform_block_of<F>) : void()), ...);
  return found;
}

constexpr std::uint8_t kEnds[] = {0x00, 0x7f, 0x80, 0xff};

// An integer that overflows, or an offset that is wrong, misses by far more than the bound. Scales
// that are floats of their own may leave nothing finite to compare.
TEST_P(QuantizedKernel, HoldsAtTheEndsOfItsIntegers) {
  const FormatOps& ops = *find_format(GetParam());
  const auto elements = static_cast<std::size_t>(ops.info.block_elements);
  int compared = 0;
  for (const std::uint8_t scale : kEnds)
    for (const std::uint8_t code : kEnds)
      for (const float activation : {127.0f, -127.0f}) {
        const auto block = uniform_block(AllFormats{}, GetParam())(scale, code);
        std::vector<float> w(elements);
        ops.decode_row(block.data(), static_cast<std::int64_t>(elements), w.data());
        if (!std::ranges::all_of(w, [](float x) { return std::isfinite(x); })) continue;
        std::vector<std::uint8_t> rows;
        for (std::size_t lane = 0; lane < kLanes; ++lane)
          rows.insert(rows.end(), block.begin(), block.end());
        const std::vector<float> x(elements, activation);
        Problem(GetParam(), rows, {x, x, x, x}).expect_exact();
        ++compared;
      }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace strata
