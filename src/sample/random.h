// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3", 2011). A number depends on its key and counter alone, so neither
// batching nor recomputation changes it.
#pragma once

#include <array>
#include <cstdint>

namespace strata {

// Ten rounds over a counter of four words.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;    // which of a request's answers
  std::uint32_t position = 0;  // of the token to choose
};

// What a number decides; those for one token are independent.
enum class RandomUse : std::uint32_t { kDraw = 0, kXtc = 1 };

// Uniform in [0, 1), 53 bits.
constexpr double uniform(const RandomKey& key, RandomUse use = RandomUse::kDraw) {
  const auto words =
      philox({key.position, key.stream, static_cast<std::uint32_t>(use), 0},
             {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace strata
