// Where the products of a block take their codes and scales from: the weights in place, or a panel,
// to which they were unpacked once for many rows of activations.
#pragma once

#include "device/cpu/kernels/cell.h"
#include "formats/format.h"
#include "formats/unpacked.h"

namespace strata {

// How a format's codes are multiplied.
template <int kPartElements, int kTop, Offset kKind>
struct Shape {
  static constexpr int kPart = kPartElements;
  static constexpr int kTopCode = kTop;
  static constexpr bool kSigned = kTop == kSignedCodes;
  static constexpr Offset kOffset = kKind;
};

template <class F>
constexpr bool kReadInPlace = requires {
  F::kPart;
};
template <class F>
constexpr bool kFloats = F::kElements == 1;

template <class F>
consteval auto shape_of() {
  if constexpr (kReadInPlace<F>)
    return Shape<F::kPart, F::kTopCode, F::kOffset>();
  else
    return Shape<16, kSignedCodes, Offset::kNone>();
}

// Whether V's panels hold all codes with a sign, less their zero, which is taken off once for many
// rows.
template <class V>
constexpr bool kSignedPanels = V::kRaised || requires {
  typename V::Tiles;
};

template <class V, class F>
consteval auto panel_shape_of() {
  using S = decltype(shape_of<F>());
  if constexpr (kSignedPanels<V> && S::kOffset == Offset::kScaled)
    return Shape<S::kPart, kSignedCodes, Offset::kNone>();
  else
    return S();
}

// Elements of a panel: one block of formats with Q8Block256, several of those with Q8Block32.
constexpr int kPanelElements = 256;

// Whether V multiplies two rows of activations at once (kernels/two_rows.h). A panel then holds, of
// each two chunks, a lane's eight codes side by side.
template <class V>
constexpr bool kTwoRows = requires {
  typename V::TwoRows;
};

// One cell's panel. Integers and floats share the places of what belongs to a part.
template <class V>
struct alignas(64) Panel {
  std::uint8_t codes[kPanelElements / 4][4 * V::kWidth];
  std::int32_t scales[16][V::kWidth];
  std::int32_t offsets[16][V::kWidth];
  float factor[V::kWidth];
  float offset_factor[V::kWidth];
  std::int32_t start[V::kWidth];  // of a block's sums, where activations are raised
};

template <class V>
struct FromPanel {
  static constexpr bool kInPlace = false;
  const Panel<V>* panel;

  typename V::Bytes codes(int c) const {
    if constexpr (kTwoRows<V>)
      return V::load_one_chunk(panel->codes[c / 2 * 2], c % 2);
    else
      return V::load_bytes(panel->codes[c]);
  }
  typename V::I32 scale(int part) const { return V::load_i32(panel->scales[part]); }
  typename V::I32 offset_pair(int pair) const { return V::load_i32(panel->offsets[pair]); }
  typename V::F32 factor() const { return V::load(panel->factor); }
  typename V::F32 offset_factor() const { return V::load(panel->offset_factor); }
  typename V::F32 part_factor(int part) const { return V::from_bits(scale(part)); }
  typename V::F32 part_offset(int part) const { return V::from_bits(offset_pair(part)); }
  // What sums of products with raised activations start with, of a block or of a part.
  typename V::I32 start() const { return V::load_i32(panel->start); }
  typename V::I32 start(int part) const { return offset_pair(part); }
};

template <class V, class F>
struct InPlace {
  static constexpr bool kInPlace = true;
  typename V::Weights w;

  [[gnu::always_inline]] typename V::Bytes codes(int c) const { return F::template codes<V>(w, c); }
  // Ready for V::add_scaled, or plain where the codes have signs.
  [[gnu::always_inline]] typename V::I32 scale(int part) const {
    const auto s = F::template scale<V>(w, part);
    if constexpr (F::kTopCode == kSignedCodes)
      return s;
    else
      return V::make_scale(s);
  }
  // Of two parts.
  [[gnu::always_inline]] typename V::I32 offset_pair(int pair) const {
    return V::make_pair(offset(2 * pair), offset(2 * pair + 1));
  }
  [[gnu::always_inline]] typename V::I32 offset(int part) const {
    if constexpr (F::kOffset == Offset::kScaled)
      return V::mul_i32(F::template scale<V>(w, part), V::broadcast_i32(F::kZeroCode));
    else
      return F::template offset<V>(w, part);
  }
  [[gnu::always_inline]] typename V::F32 factor() const { return F::template factor<V>(w); }
  [[gnu::always_inline]] typename V::F32 offset_factor() const {
    return F::template offset_factor<V>(w);
  }
  [[gnu::always_inline]] typename V::F32 part_factor(int part) const {
    return F::template factor<V>(w, part);
  }
  [[gnu::always_inline]] typename V::F32 part_offset(int part) const {
    return F::template offset<V>(w, part);
  }
};

// A number known to the compiler, as an argument.
template <int kValue>
struct Constant {
  [[gnu::always_inline]] constexpr operator int() const { return kValue; }
};

// Builds whose speed does not count keep their loops: spelled out, with all that a sanitizer
// checks, they took compilers minutes.
#ifdef STRATA_ROLLED_LOOPS
constexpr bool kMaySpellOut = false;
#else
constexpr bool kMaySpellOut = true;
#endif

// f(0) .. f(kCount - 1), spelled out where kSpellOut says so.
template <bool kSpellOut, int kCount, int kFirst = 0, class F>
[[gnu::always_inline]] inline void repeat(const F& f) {
  if constexpr (!kSpellOut || !kMaySpellOut) {
    for (int i = 0; i < kCount; ++i) f(i);
  } else if constexpr (kFirst < kCount) {
    f(Constant<kFirst>());
    repeat<kSpellOut, kCount, kFirst + 1>(f);
  }
}

// Codes and scales of block `index` of the panel, and of the whole panel its factors.
template <class V, class F>
void unpack_in_place(typename V::Weights w, int index, Panel<V>& panel) {
  using S = decltype(panel_shape_of<V, F>());
  const InPlace<V, F> s{w};
  constexpr int kChunks = F::kElements / 4;
  constexpr int kParts = F::kElements / F::kPart;
  repeat<V::kUnrolled, kChunks>([&](auto c) __attribute__((always_inline)) {
    auto codes = s.codes(c);
    if constexpr (S::kSigned && F::kOffset == Offset::kScaled)
      codes = V::sub_bytes(codes, V::broadcast_byte(F::kZeroCode));
    V::store_bytes(panel.codes[index * kChunks + c], codes);
  });
  repeat<V::kUnrolled, kParts>([&](auto p) __attribute__((always_inline)) {
    auto* scale = panel.scales[index * kParts + p];
    auto* offset = panel.offsets[index * kParts + p];
    if constexpr (activation_kind<typename F::Activation>() == ActivationKind::kQ8x256) {
      V::store_i32(scale, s.scale(p));
    } else {
      V::store_i32(scale, V::bits(s.part_factor(p)));
      if constexpr (F::kOffset != Offset::kNone) V::store_i32(offset, V::bits(s.part_offset(p)));
    }
  });
  if constexpr (activation_kind<typename F::Activation>() == ActivationKind::kQ8x256) {
    V::store(panel.factor, s.factor());
    if constexpr (F::kOffset == Offset::kOwnFactor)
      V::store(panel.offset_factor, s.offset_factor());
    if constexpr (S::kOffset != Offset::kNone)
      repeat<V::kUnrolled, kParts / 2>([&](auto j) __attribute__((always_inline)) {
        V::store_i32(panel.offsets[j], s.offset_pair(j));
      });
  }
}

template <class V, class F>
void unpack_by_row(typename V::Weights w, Panel<V>& panel) {
  for (int lane = 0; lane < V::kWidth; ++lane) {
    const std::uint8_t* group = V::group(w, lane / kLanes);
    const int row = lane % kLanes;
    Unpacked u;
    F::template unpack<V>(group + in_group(F::kFactor) + row * 2,
                          group + in_group(F::kCodes) + row * F::kCodeBytes, u);
    panel.factor[lane] = u.factor;
    for (int j = 0; j < 16; ++j) panel.scales[j][lane] = u.scales[j];
    for (int c = 0; c < 64; ++c) std::memcpy(panel.codes[c] + 4 * lane, u.codes + 4 * c, 4);
  }
}

// Raising activations by 128 adds as much times the codes to the products: what takes it off again,
// of `count` parts.
template <class V, class S, ActivationKind kKind>
void fill_starts(int first, int count, Panel<V>& panel) {
  auto start = V::zero_i32();
  for (int part = first; part < first + count; ++part) {
    auto excess = V::zero_i32();
    for (int c = 0; c < S::kPart / 4; ++c)
      excess = V::dot4_s8s8(excess, V::load_bytes(panel.codes[part * (S::kPart / 4) + c]),
                            V::broadcast_byte(128));
    if constexpr (kKind == ActivationKind::kQ8x256)
      start = V::sub_i32(start, V::mul_i32(V::load_i32(panel.scales[part]), excess));
    else
      V::store_i32(panel.offsets[part], V::sub_i32(V::zero_i32(), excess));
  }
  V::store_i32(panel.start, start);
}

template <class V, class F>
void unpack(typename V::Weights w, int index, Panel<V>& panel) {
  using S = decltype(panel_shape_of<V, F>());
  if constexpr (kReadInPlace<F>)
    unpack_in_place<V, F>(w, index, panel);
  else
    unpack_by_row<V, F>(w, panel);
  if constexpr (S::kSigned && V::kRaised) {
    constexpr int kParts = F::kElements / S::kPart;
    fill_starts<V, S, activation_kind<typename F::Activation>()>(index * kParts, kParts, panel);
  }
  if constexpr (kTwoRows<V>) {
    constexpr int kChunks = F::kElements / 4;
    for (int c = 0; c < kChunks; c += 2) V::pair_chunks(panel.codes[index * kChunks + c]);
  }
}

}  // namespace strata
