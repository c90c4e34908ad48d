#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

// Rows 0 to `cut` and the rest of a slice of 72 rows, prepared one after the other.
std::vector<std::uint8_t> prepare(const CpuOptions& options, std::int64_t cut) {
  constexpr std::int64_t kRows = 72, kColumns = 4;
  constexpr std::size_t kRowBytes = kColumns * sizeof(float);
  std::vector<std::uint8_t> source(kRows * kRowBytes), prepared(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i * 37);
  const auto device = make_cpu_device(options).value();
  const auto at = static_cast<std::size_t>(cut) * kRowBytes;
  const std::span<const std::uint8_t> bytes(source);
  EXPECT_TRUE(
      device->prepare(FormatId::F32, kColumns, {0, cut, kRows}, bytes.first(at), prepared.data())
          .ok());
  EXPECT_TRUE(device
                  ->prepare(FormatId::F32, kColumns, {cut, kRows - cut, kRows}, bytes.subspan(at),
                            prepared.data() + at)
                  .ok());
  return prepared;
}

TEST(CpuDevice, BoundThreadsPrepareTheSameBytes) {
  const CpuOptions bound{.threads = 5, .processors = {{0}, {0}, {0}, {1}, {1}}};
  const auto expected = prepare({}, 72);
  for (const std::int64_t cut : {0, 8, 32, 64, 72}) EXPECT_EQ(prepare(bound, cut), expected);
}

TEST(CpuDevice, RefusesProcessorsForAnotherNumberOfThreads) {
  EXPECT_FALSE(make_cpu_device({.threads = 2, .processors = {{0}}}).ok());
}

}  // namespace
}  // namespace strata
