// The vocabulary of matrix products in tiles of AMX, beside that of AVX-512. Only an ISA file
// compiled for both includes this.
#pragma once

#include "device/cpu/simd/avx512.h"

namespace strata {
namespace {

// The thread's eight tile registers. The first six hold up to sixteen rows, of 64 bytes with a sign
// or of 16 sums; the last two hold right operands of products: 16 rows of 16 lanes of four bytes.
class AmxTiles {
 public:
  explicit AmxTiles(int rows) {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shape;
    for (int tile = 0; tile < 8; ++tile) {
      shape.rows[tile] = static_cast<std::uint8_t>(tile < 6 ? rows : 16);
      shape.row_bytes[tile] = 64;
    }
    asm volatile("ldtilecfg %0" : : "m"(shape));
  }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles() { asm volatile("tilerelease"); }

  template <int kSum>
  void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kSum));
  }
  template <int kTile>
  void load(const void* rows, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kSum>
  void store(std::int32_t* rows, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(stride), "i"(kSum) : "memory");
  }
  // sum += left * right, whose bytes have a sign or not.
  template <bool kSigned, int kSum, int kLeft, int kRight>
  void dot() {
    if constexpr (kSigned)
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
    else
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
  }
};

struct Avx512Amx : Avx512 {
  using Tiles = AmxTiles;

  static constexpr bool kRaised = false;
  static constexpr int kFewTileRows = 24;

  // Each byte times its lane's scale, where all products fit a byte without sign.
  static Bytes scale_bytes(Bytes codes, I32 scale) {
    return _mm512_mullo_epi16(codes, or_i32(scale, shl_i32(scale, 16)));
  }
  // Each byte times its lane's scale, both with a sign: the products' low and high bytes.
  static void store_products(Bytes codes, I32 scale, std::uint8_t* low, std::uint8_t* high) {
    const Bytes odd_bytes = _mm512_set1_epi16(static_cast<std::int16_t>(0xff00));
    const I32 factor = or_i32(shl_i32(scale, 24), and_i32(shl_i32(scale, 8), 0xff00));
    const I32 even = _mm512_mulhi_epi16(_mm512_slli_epi16(codes, 8), factor);
    const I32 odd = _mm512_mulhi_epi16(_mm512_and_si512(codes, odd_bytes), factor);
    store_bytes(low, or_bytes(_mm512_andnot_si512(odd_bytes, even), _mm512_slli_epi16(odd, 8)));
    store_bytes(high, or_bytes(_mm512_srli_epi16(even, 8), _mm512_and_si512(odd, odd_bytes)));
  }
};

}  // namespace
}  // namespace strata
