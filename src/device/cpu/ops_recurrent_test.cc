// Recurrent operations against their definitions in double arithmetic, with the rows of two
// sequences cut into steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/cpu/cpu_device.h"
#include "device/cpu/test_support.h"
#include "graph/builder.h"

namespace strata {
namespace {

using testing::noise;

constexpr std::int32_t kTokens = 6;  // whose embeddings are the inputs; no output is narrower

using Vector = std::vector<double>;

// A graph whose embedding is the input of what a test appends, and whose logits are its output.
class RecurrentOp : public ::testing::Test {
 protected:
  ValueId input(std::int32_t width) {
    width_ = width;
    table_ = noise(kTokens * width, 1);
    const WeightId table =
        graph_.add_weight({"table", WeightRole::kMatrix, FormatId::F32, width, kTokens, 1});
    vectors_.push_back(table_);
    return graph_.embed(table, 1.0f);
  }

  WeightId vector(std::int64_t elements, float scale = 1.0f) {
    vectors_.push_back(noise(elements, static_cast<std::uint32_t>(vectors_.size()) + 1, scale));
    return graph_.add_weight({"vector", WeightRole::kVector, FormatId::F32, elements, 1, 1});
  }
  double at(WeightId id, std::int64_t i) const {
    return vectors_[static_cast<std::size_t>(id.value)][static_cast<std::size_t>(i)];
  }

  // Rows of token `tokens[i]` by the definition, against the device's in steps of both sequences.
  template <class Step>
  void check(ValueId out, const std::vector<Step>& sequences) {
    auto graph = graph_.finish(graph_.select_logit_rows(out));
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    for (const int threads : {1, 3}) compare(*graph, threads, sequences);
  }

 private:
  template <class Step>
  void compare(const Graph& graph, int threads, std::vector<Step> sequences) {
    auto device = make_cpu_device({threads, Isa::kBest, true}).value();
    std::vector<std::vector<float>> weights = vectors_;
    ASSERT_TRUE(device
                    ->prepare(FormatId::F32, width_, {0, kTokens, kTokens}, bytes(table_),
                              reinterpret_cast<std::uint8_t*>(weights[0].data()))
                    .ok());
    SegmentSpec spec;
    spec.graph = &graph;
    spec.limits = {16, 16};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Weight& w = graph.weights[i];
      spec.weights.push_back({FormatId::F32,
                              w.columns,
                              w.rows,
                              1,
                              {{reinterpret_cast<std::uint8_t*>(weights[i].data()), 0, w.rows}}});
    }
    std::vector<Buffer> buffers;
    for (const CacheGroupSpec& group : graph.cache_groups) {
      const Bytes block = cache_block_bytes(group, CacheFormat::kF32);
      buffers.push_back(device->allocate(4 * block).value());
      std::memset(buffers.back().data(), 0xff, 4 * block);  // NaNs: nothing is cleared in advance
      spec.caches.push_back({buffers.back().data(), block, 4});
    }
    auto segment = device->bind(spec).value();
    const std::vector<BlockId> slots[] = {{BlockId{2}}, {BlockId{1}}};
    Position computed[] = {0, 0};
    for (const std::int32_t rows : {1, 3, 2, 4}) {
      std::vector<TokenId> tokens;
      std::vector<StepSlice> slices;
      std::vector<std::int32_t> wanted;
      for (std::size_t s = 0; s < 2; ++s) {
        StepSlice slice{static_cast<std::int32_t>(tokens.size()), rows, computed[s], {}};
        slice.block_tables.assign(graph.cache_groups.size(), slots[s]);
        for (std::int32_t r = 0; r < rows; ++r) {
          wanted.push_back(static_cast<std::int32_t>(tokens.size()));
          tokens.push_back(static_cast<TokenId>((computed[s] + r) * 5 + 3 * s) % kTokens);
        }
        computed[s] += rows;
        slices.push_back(std::move(slice));
      }
      const auto got = device->run(*segment, {tokens, slices, wanted});
      ASSERT_TRUE(got.ok()) << got.status().message();
      expect_rows(*got, tokens, sequences, static_cast<std::size_t>(rows));
    }
  }

  template <class Step>
  void expect_rows(std::span<const float> got, const std::vector<TokenId>& tokens,
                   std::vector<Step>& sequences, std::size_t rows_each) {
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      Vector in(static_cast<std::size_t>(width_));
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = table_[static_cast<std::size_t>(tokens[row]) * in.size() + i];
      const Vector exact = sequences[row / rows_each](in);
      for (std::size_t i = 0; i < exact.size(); ++i)
        ASSERT_NEAR(got[row * exact.size() + i], exact[i], 1e-5 * (1 + std::fabs(exact[i])));
    }
  }

  static std::span<const std::uint8_t> bytes(const std::vector<float>& values) {
    return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float)};
  }

 protected:
  GraphBuilder graph_{Graph{}};

 private:
  std::int32_t width_ = 0;
  std::vector<float> table_;
  std::vector<std::vector<float>> vectors_;  // by WeightId
};

TEST_F(RecurrentOp, ShortConvolutionSeesTheInputsBefore) {
  constexpr std::int32_t kChannels = 20, kKernel = 4;
  ShortConvOp op;
  op.in = input(kChannels);
  op.weight = vector(kChannels * kKernel);
  op.bias = vector(kChannels);
  op.kernel = kKernel;
  const auto step = [=, this, past = std::vector<Vector>(kKernel - 1, Vector(kChannels))](
                        const Vector& x) mutable {
    past.push_back(x);
    Vector out;
    for (std::int64_t c = 0; c < kChannels; ++c) {
      double sum = at(*op.bias, c);
      for (std::int64_t t = 0; t < kKernel; ++t)
        sum += at(op.weight, c * kKernel + t) *
               past[static_cast<std::size_t>(t)][static_cast<std::size_t>(c)];
      out.push_back(sum);
    }
    past.erase(past.begin());
    return out;
  };
  check(graph_.short_conv(op), std::vector(2, step));
}

TEST_F(RecurrentOp, TokenShiftMixesInTheInputBefore) {
  constexpr std::int32_t kWidth = 20;
  const ValueId in = input(kWidth);
  const WeightId weight = vector(2 * kWidth);
  const auto outs = graph_.token_shift(in, weight, 2);
  graph_.add_to(outs[0], outs[1]);
  const auto step = [=, this, previous = Vector(kWidth)](const Vector& x) mutable {
    Vector out;
    for (std::size_t c = 0; c < kWidth; ++c) {
      const auto i = static_cast<std::int64_t>(c);
      out.push_back(2 * x[c] + (previous[c] - x[c]) * (at(weight, i) + at(weight, kWidth + i)));
    }
    previous = x;
    return out;
  };
  check(outs[0], std::vector(2, step));
}

// The scan of three heads of two channels in one group, `a` by head or by head and element.
class SsmScan : public RecurrentOp, public ::testing::WithParamInterface<bool> {};

TEST_P(SsmScan, DecaysAddsAndReadsOut) {
  constexpr std::int32_t kHeads = 3, kSize = 2, kState = 5;
  const bool per_head = GetParam();
  SsmScanOp op;
  const ValueId in = input(kHeads * kSize + kHeads + 2 * kState);
  op.x = graph_.slice(in, 0, kHeads * kSize);
  op.dt = graph_.slice(in, kHeads * kSize, kHeads);
  graph_.activate(op.dt, UnaryFunction::kSigmoid);
  op.b = graph_.slice(in, kHeads * kSize + kHeads, kState);
  op.c = graph_.slice(in, kHeads * kSize + kHeads + kState, kState);
  op.a = vector(per_head ? kHeads : kHeads * kState, 0.5f);
  op.d = vector(kHeads);
  op.heads = kHeads;
  op.head_size = kSize;
  op.state_size = kState;
  const auto step = [=, this, state = Vector(kHeads * kSize * kState)](const Vector& x) mutable {
    Vector out;
    for (std::int64_t i = 0; i < kHeads * kSize; ++i) {
      const std::int64_t h = i / kSize;
      const double dt = 1 / (1 + std::exp(-x[static_cast<std::size_t>(kHeads * kSize + h)]));
      const double input = x[static_cast<std::size_t>(i)];
      double sum = at(op.d, h) * input;
      for (std::int64_t n = 0; n < kState; ++n) {
        double& s = state[static_cast<std::size_t>(i * kState + n)];
        const auto b = static_cast<std::size_t>(kHeads * kSize + kHeads + n);
        s = std::exp(dt * at(op.a, per_head ? h : h * kState + n)) * s + dt * input * x[b];
        sum += s * x[b + kState];
      }
      out.push_back(sum);
    }
    return out;
  };
  check(graph_.ssm_scan(op), std::vector(2, step));
}

INSTANTIATE_TEST_SUITE_P(Decays, SsmScan, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "per_head" : "per_element"; });

TEST_F(RecurrentOp, TheDeltaRuleCorrectsWhatAKeyBringsUp) {
  constexpr std::int32_t kKeyHeads = 2, kHeads = 4, kKey = 6, kValue = 3;
  constexpr double kEpsilon = 1e-6;
  constexpr std::int32_t kKeys = kKeyHeads * kKey, kValues = kHeads * kValue;
  GatedDeltaOp op;
  const ValueId in = input(2 * kKeys + kValues + 2 * kHeads);
  op.query = graph_.slice(in, 0, kKeys);
  op.key = graph_.slice(in, kKeys, kKeys);
  op.value = graph_.slice(in, 2 * kKeys, kValues);
  op.dt = graph_.slice(in, 2 * kKeys + kValues, kHeads);
  op.beta = graph_.slice(in, 2 * kKeys + kValues + kHeads, kHeads);
  op.a = vector(kHeads, 0.3f);
  op.key_heads = kKeyHeads;
  op.value_heads = kHeads;
  op.key_size = kKey;
  op.value_size = kValue;
  op.epsilon = static_cast<float>(kEpsilon);
  const auto step = [=, this, state = Vector(kHeads * kValue * kKey)](const Vector& x) mutable {
    Vector out;
    for (std::size_t h = 0; h < kHeads; ++h) {
      const double* q = x.data() + h / 2 * kKey;
      const double* k = q + kKeys;
      double qq = kEpsilon, kk = kEpsilon;
      for (std::size_t i = 0; i < kKey; ++i) qq += q[i] * q[i], kk += k[i] * k[i];
      const double decay =
          std::exp(at(op.a, static_cast<std::int64_t>(h)) * x[2 * kKeys + kValues + h]);
      for (std::size_t v = 0; v < kValue; ++v) {
        double* row = state.data() + (h * kValue + v) * kKey;
        double seen = 0, read = 0;
        for (std::size_t i = 0; i < kKey; ++i) seen += (row[i] *= decay) * k[i] / std::sqrt(kk);
        const double change =
            x[2 * kKeys + kValues + kHeads + h] * (x[2 * kKeys + h * kValue + v] - seen);
        for (std::size_t i = 0; i < kKey; ++i) {
          row[i] += change * k[i] / std::sqrt(kk);
          read += row[i] * q[i] / std::sqrt(qq * kKey);
        }
        out.push_back(read);
      }
    }
    return out;
  };
  check(graph_.gated_delta(op), std::vector(2, step));
}

TEST_F(RecurrentOp, Rwkv7RemovesWhatAKeyBringsUpAndAddsItsValue) {
  constexpr std::int32_t kHeads = 3, kSize = 5, kWidth = kHeads * kSize;
  Rwkv7Op op;
  const ValueId in = input(5 * kWidth);
  op.receptance = graph_.slice(in, 0, kWidth);
  op.decay = graph_.slice(in, kWidth, kWidth);
  op.key = graph_.slice(in, 2 * kWidth, kWidth);
  op.value = graph_.slice(in, 3 * kWidth, kWidth);
  op.rate = graph_.slice(in, 4 * kWidth, kWidth);
  for (const ValueId share : {op.decay, op.rate}) graph_.activate(share, UnaryFunction::kSigmoid);
  op.removal = vector(kWidth);
  op.replacement = vector(kWidth);
  op.bonus_weight = vector(kWidth);
  op.heads = kHeads;
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto step = [=, this, state = Vector(kWidth * kSize)](const Vector& x) mutable {
    Vector out, bonus;
    for (std::size_t h = 0; h < kWidth; h += kSize) {
      const double *r = x.data() + h, *key = r + 2 * kWidth, *value = r + 3 * kWidth;
      Vector decay, removed, rate, k;
      double squares = 0, weight = 0;
      for (std::size_t i = 0; i < kSize; ++i) {
        const auto w = static_cast<std::int64_t>(h + i);
        decay.push_back(std::exp(-std::exp(-0.5) * sigmoid(r[kWidth + i])));
        rate.push_back(sigmoid(r[4 * kWidth + i]));
        removed.push_back(key[i] * at(op.removal, w));
        squares += removed[i] * removed[i];
        k.push_back(key[i] * (1 + (rate[i] - 1) * at(op.replacement, w)));
        weight += r[i] * k[i] * at(op.bonus_weight, w);
      }
      for (double& kk : removed) kk /= std::max(std::sqrt(squares), 1e-12);
      for (std::size_t v = 0; v < kSize; ++v) {
        double* row = state.data() + (h + v) * kSize;
        double seen = 0, read = 0;
        for (std::size_t i = 0; i < kSize; ++i) seen += row[i] * removed[i];
        for (std::size_t i = 0; i < kSize; ++i) {
          row[i] = row[i] * decay[i] - seen * removed[i] * rate[i] + value[v] * k[i];
          read += row[i] * r[i];
        }
        out.push_back(read);
        bonus.push_back(weight * value[v]);
      }
    }
    out.insert(out.end(), bonus.begin(), bonus.end());
    return out;
  };
  const auto mixed = graph_.rwkv7(op);
  check(graph_.concat({{mixed.out, 0, 0, kWidth}, {mixed.bonus, 0, 0, kWidth}}, 1),
        std::vector(2, step));
}

}  // namespace
}  // namespace strata
