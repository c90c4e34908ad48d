// The kernels of activations and recurrent states on every ISA: against double arithmetic, and bit
// for bit against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "device/cpu/isa_select.h"
#include "device/cpu/kernels.h"
#include "device/cpu/test_support.h"

namespace strata {
namespace {

using testing::noise;

// Runs `kernel` on every ISA and hands each result to `check`.
void on_every_isa(const std::function<std::vector<float>(const KernelTable&)>& kernel,
                  const std::function<void(const std::vector<float>&)>& check) {
  std::vector<float> first;
  for (const Isa isa : runnable_isas()) {
    const auto got = kernel(**select_kernels(isa));
    check(got);
    if (first.empty()) first = got;
    ASSERT_EQ(got.size(), first.size());
    EXPECT_EQ(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)), 0);
  }
}

struct Activation {
  const char* name;
  ActivateKernel KernelTable::*kernel;
  double (*exact)(double);
};

class ActivationKernels : public ::testing::TestWithParam<Activation> {};

TEST_P(ActivationKernels, MatchDoubleArithmeticWithAndWithoutABias) {
  for (const std::int64_t n : {1, 7, 8, 61, 300}) {
    const auto x = noise(n, 2, 6.0f), bias = noise(n, 3);
    for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
      on_every_isa(
          [&](const KernelTable& kernels) {
            auto y = x;
            (kernels.*GetParam().kernel)(y.data(), b, n);
            return y;
          },
          [&](const std::vector<float>& y) {
            for (std::size_t i = 0; i < y.size(); ++i) {
              const double exact = GetParam().exact(b == nullptr ? x[i] : x[i] + b[i]);
              EXPECT_NEAR(y[i], exact, 1e-6 + 2e-6 * std::fabs(exact)) << x[i];
            }
          });
    }
  }
}

TEST_P(ActivationKernels, KeepWhatIsNotANumber) {
  for (const Isa isa : runnable_isas()) {
    std::vector<float> x(9, std::nanf(""));
    ((**select_kernels(isa)).*GetParam().kernel)(x.data(), nullptr, 9);
    for (const float v : x) EXPECT_TRUE(std::isnan(v));
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

INSTANTIATE_TEST_SUITE_P(
    Functions, ActivationKernels,
    ::testing::Values(Activation{"silu", &KernelTable::silu,
                                 [](double x) { return x * sigmoid(x); }},
                      Activation{"sigmoid", &KernelTable::sigmoid, sigmoid},
                      Activation{"tanh", &KernelTable::tanh, [](double x) { return std::tanh(x); }},
                      Activation{"relu_squared", &KernelTable::relu_squared,
                                 [](double x) { return x > 0 ? x * x : 0.0; }},
                      Activation{"softplus", &KernelTable::softplus,
                                 [](double x) { return std::log1p(std::exp(x)); }},
                      Activation{"gelu", &KernelTable::gelu,
                                 [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2)); }}),
    [](const auto& p) { return p.param.name; });

TEST(RecurrentKernels, SoftplusKeepsItsRelativeErrorAtBothEnds) {
  std::vector<float> x = {-80, -40, -20, -5, 0, 5, 20, 40, 80};
  on_every_isa(
      [&](const KernelTable& kernels) {
        auto y = x;
        kernels.softplus(y.data(), nullptr, 9);
        return y;
      },
      [&](const std::vector<float>& y) {
        for (std::size_t i = 0; i < y.size(); ++i) {
          const double exact = std::log1p(std::exp(double{x[i]}));
          EXPECT_NEAR(y[i], exact, 1e-6 * exact) << x[i];
        }
      });
}

TEST(RecurrentKernels, GeluKeepsItsErrorBelow3e7OfItsArgument) {
  std::vector<float> x;
  for (float magnitude = 1e-30f; magnitude < 1e38f; magnitude *= 1.001f)
    for (const float sign : {-1.0f, 1.0f}) x.push_back(sign * magnitude);
  for (const float v : {0.0f, INFINITY, -INFINITY, 14.0f, -14.0f}) x.push_back(v);
  on_every_isa(
      [&](const KernelTable& kernels) {
        auto y = x;
        kernels.gelu(y.data(), nullptr, std::ssize(y));
        return y;
      },
      [&](const std::vector<float>& y) {
        for (std::size_t i = 0; i < y.size(); ++i) {
          if (std::isinf(x[i])) {
            EXPECT_NEAR(y[i] > 0 ? 1 / y[i] : y[i], 0, 1e-30);
            continue;
          }
          const double exact = double{x[i]} / 2 * std::erfc(double{x[i]} / -std::sqrt(2.0));
          ASSERT_NEAR(y[i], exact, 3e-7 * std::fabs(double{x[i]})) << x[i];
        }
      });
}

TEST(RecurrentKernels, GatesMatchDoubleArithmetic) {
  const auto gate = noise(61, 4, 4.0f), up = noise(61, 5);
  on_every_isa(
      [&](const KernelTable& kernels) {
        std::vector<float> out(122);
        kernels.gate_sigmoid(gate.data(), up.data(), 61, out.data());
        kernels.multiply(gate.data(), up.data(), 61, out.data() + 61);
        return out;
      },
      [&](const std::vector<float>& out) {
        for (std::size_t i = 0; i < 61; ++i) {
          EXPECT_NEAR(out[i], sigmoid(gate[i]) * up[i], 2e-6 * std::fabs(up[i]));
          EXPECT_EQ(out[61 + i], gate[i] * up[i]);
        }
      });
}

TEST(RecurrentKernels, LayerNormCentresScalesAndShifts) {
  for (const std::int64_t n : {4, 16, 61}) {
    const auto x = noise(n, 6, 3.0f), weight = noise(n, 7), bias = noise(n, 8);
    double mean = 0, variance = 0;
    for (const float v : x) mean += v / static_cast<double>(n);
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    on_every_isa(
        [&](const KernelTable& kernels) {
          auto out = x;
          kernels.layer_norm(out.data(), weight.data(), bias.data(), 1e-5f, n, out.data());
          return out;
        },
        [&](const std::vector<float>& out) {
          for (std::size_t i = 0; i < out.size(); ++i)
            EXPECT_NEAR(out[i], (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i],
                        1e-5);
        });
  }
}

TEST(RecurrentKernels, AStateStepDecaysAddsAndReadsOut) {
  for (const std::int64_t n : {1, 5, 16, 61, 128}) {
    const auto s = noise(n, 9), decay = noise(n, 10), b = noise(n, 11), c = noise(n, 12);
    on_every_isa(
        [&](const KernelTable& kernels) {
          auto out = s;
          out.push_back(kernels.state_step(out.data(), decay.data(), 0.7f, b.data(), c.data(), n));
          out.push_back(kernels.dot(b.data(), c.data(), n));
          out.resize(out.size() + static_cast<std::size_t>(n));
          kernels.exp_scaled(-0.3f, b.data(), n, out.data() + n + 2);
          return out;
        },
        [&](const std::vector<float>& out) {
          const auto size = static_cast<std::size_t>(n);
          double read = 0, dot = 0;
          for (std::size_t i = 0; i < size; ++i) {
            const double next = double{s[i]} * decay[i] + 0.7 * b[i];
            EXPECT_NEAR(out[i], next, 1e-6 * (1 + std::fabs(next)));
            EXPECT_NEAR(out[size + 2 + i], std::exp(-0.3 * b[i]), 1e-6 * std::exp(-0.3 * b[i]));
            read += next * c[i];
            dot += double{b[i]} * c[i];
          }
          EXPECT_NEAR(out[size], read, 2e-5);
          EXPECT_NEAR(out[size + 1], dot, 2e-5);
        });
  }
}

}  // namespace
}  // namespace strata
