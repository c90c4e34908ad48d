#include "probe/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/cpu/isa_select.h"
#include "probe/machine.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

TEST(Limits, MeasuresFewTeamSizesOfManyCores) {
  EXPECT_THAT(measured_threads(0), ElementsAre(1));
  EXPECT_THAT(measured_threads(1), ElementsAre(1));
  EXPECT_THAT(measured_threads(2), ElementsAre(1, 2));
  EXPECT_THAT(measured_threads(8), ElementsAre(1, 2, 3, 4, 6, 8));
  EXPECT_LE(measured_threads(1024).size(), 20u);
}

TEST(Limits, OfEveryIsaAreMeasured) {
  const MeasureEffort little = {
      .buffer_bytes = 4 * kMiB, .least_time = std::chrono::milliseconds(1), .repetitions = 3};
  for (const Isa isa : runnable_isas()) {
    const KernelTable& kernels = **select_kernels(isa);
    const auto limits = measure_limits(kernels, std::vector{1, 2}, little);
    ASSERT_TRUE(limits.ok()) << limits.status().message();
    EXPECT_EQ(limits->cpu, cpu_name());
    EXPECT_EQ(limits->isa, kernels.name);
    EXPECT_EQ(limits->date.size(), 10u);
    ASSERT_EQ(limits->by_threads.size(), 2u);
    for (int i = 0; i < 2; ++i) {
      const ThreadLimits& of = limits->by_threads[static_cast<std::size_t>(i)];
      EXPECT_EQ(of.threads, i + 1);
      EXPECT_GT(of.read_bandwidth, 0);
      EXPECT_GT(of.int8_ops, 0);
      EXPECT_GT(of.f32_ops, 0);
    }
  }
}

TEST(Limits, NeedMemoryToLookPastTheCaches) {
  const MeasureEffort absurd = {.buffer_bytes = Bytes{1} << 60};
  const auto limits = measure_limits(**select_kernels(Isa::kScalar), std::vector{1}, absurd);
  EXPECT_EQ(limits.status().code(), StatusCode::kResourceExhausted);
}

TEST(PeakKernels, CountWhatTheyDo) {
  for (const Isa isa : runnable_isas()) {
    const KernelTable& kernels = **select_kernels(isa);
    for (const auto peak : {kernels.peak_int8, kernels.peak_f32}) {
      EXPECT_GT(peak(1), 0);
      EXPECT_EQ(peak(7), 7 * peak(1));
    }
  }
}

}  // namespace
}  // namespace strata
