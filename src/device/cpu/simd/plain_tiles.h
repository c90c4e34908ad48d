// The vocabulary of matrix products in tiles, spelled out: the reference for AMX.
#pragma once

#include "device/cpu/simd/scalar.h"

namespace strata {
namespace {

// See AmxTiles; the right operands and the sums have eight lanes.
class PlainTiles {
 public:
  explicit PlainTiles(int rows) : rows_(rows) {}

  template <int kSum>
  void zero() {
    std::memset(tiles_[kSum], 0, sizeof tiles_[kSum]);
  }
  template <int kTile>
  void load(const void* rows, std::int64_t stride) {
    const bool left = kTile < 6;
    for (int row = 0; row < (left ? rows_ : 16); ++row)
      std::memcpy(tiles_[kTile][row], static_cast<const std::uint8_t*>(rows) + row * stride,
                  left ? 64 : kRowBytes);
  }
  template <int kSum>
  void store(std::int32_t* rows, std::int64_t stride) const {
    for (int row = 0; row < rows_; ++row)
      std::memcpy(reinterpret_cast<std::uint8_t*>(rows) + row * stride, tiles_[kSum][row],
                  kRowBytes);
  }
  template <bool kSigned, int kSum, int kLeft, int kRight>
  void dot() {
    for (int row = 0; row < rows_; ++row) {
      std::int32_t sums[Scalar::kWidth];
      std::memcpy(sums, tiles_[kSum][row], sizeof sums);
      for (int i = 0; i < 64; ++i)
        for (int lane = 0; lane < Scalar::kWidth; ++lane) {
          const std::uint8_t code = tiles_[kRight][i / 4][4 * lane + i % 4];
          const int factor = kSigned ? static_cast<std::int8_t>(code) : code;
          sums[lane] += static_cast<std::int8_t>(tiles_[kLeft][row][i]) * factor;
        }
      std::memcpy(tiles_[kSum][row], sums, sizeof sums);
    }
  }

 private:
  static constexpr int kRowBytes = 4 * Scalar::kWidth;

  int rows_;
  std::uint8_t tiles_[8][16][64];
};

struct ScalarTiles : Scalar {
  using Tiles = PlainTiles;

  static constexpr int kFewTileRows = 0;  // rows of activations up to which no tile pays

  static Bytes sub_bytes(Bytes a, Bytes b) {
    return each_byte([&](int i) { return a.v[i] - b.v[i]; });
  }
  // Each byte times its lane's scale, where all products fit a byte without sign.
  static Bytes scale_bytes(Bytes codes, I32 scale) {
    return each_byte([&](int i) { return codes.v[i] * scale.v[i / 4]; });
  }
  // Each byte times its lane's scale, both with a sign: the products' low and high bytes.
  static void store_products(Bytes codes, I32 scale, std::uint8_t* low, std::uint8_t* high) {
    for (int i = 0; i < 32; ++i) {
      const int product = static_cast<std::int8_t>(codes.v[i]) * scale.v[i / 4];
      low[i] = static_cast<std::uint8_t>(product & 0xff);
      high[i] = static_cast<std::uint8_t>((product >> 8) & 0xff);
    }
  }
};

}  // namespace
}  // namespace strata
