// The products of one block of weights, G cells, with R rows of activations. The integers of a
// scale are summed exactly, whatever their order; what follows are fused multiply-adds in the order
// of formats/format.h.
#pragma once

#include "device/cpu/kernels/two_rows.h"

namespace strata {

// total[g][r] += scale[g] * sum of code * q over the part that starts at `chunk`, with its
// activations at q[r]; without the scale where kScaled says so.
template <class V, class S, bool kScaled, int G, int R, class Source>
[[gnu::always_inline]] inline void add_part(const Source* s, int chunk, const std::int8_t* const* q,
                                            const typename V::I32* scale,
                                            typename V::I32 (*total)[R]) {
  if constexpr (kInTwoRows<V, Source, R>)
    return add_part_in_two_rows<V, S, kScaled, G, R>(s, chunk, q, scale, total);
  constexpr int kChunks = S::kPart / 4;
  constexpr int kDots = V::dot_depth(S::kSigned ? 1 : S::kTopCode);
  constexpr int kDepth = S::kSigned || kDots > kChunks ? kChunks : kDots;
  static_assert(kChunks % kDepth == 0);
  // In place nothing has taken off yet what raised activations add.
  constexpr bool kExcess = S::kSigned && V::kRaised && Source::kInPlace;
  repeat<V::kUnrolled, kChunks / kDepth>([&](auto run) __attribute__((always_inline)) {
    typename V::Dots dots[G][R];
    typename V::I32 sums[G][R], excess[G];
    for (int g = 0; g < G; ++g) {
      excess[g] = V::zero_i32();
      for (int r = 0; r < R; ++r) {
        if constexpr (S::kSigned)
          sums[g][r] = V::zero_i32();
        else
          dots[g][r] = V::zero_dots();
      }
    }
    repeat<V::kUnrolled, kDepth>([&](auto i) __attribute__((always_inline)) {
      const int c = run * kDepth + i;
      typename V::Bytes codes[G];
      for (int g = 0; g < G; ++g) {
        codes[g] = s[g].codes(chunk + c);
        if constexpr (kExcess)
          excess[g] = V::dot4_s8s8(excess[g], codes[g], V::broadcast_byte(128));
      }
      for (int r = 0; r < R; ++r) {
        auto activations = V::broadcast4(q[r] + 4 * c, c);
        if constexpr (S::kSigned && V::kRaised) activations = V::raise(activations);
        for (int g = 0; g < G; ++g) {
          if constexpr (S::kSigned)
            sums[g][r] = V::dot4_s8s8(sums[g][r], codes[g], activations);
          else
            dots[g][r] = V::add_dots(dots[g][r], codes[g], activations);
        }
      }
    });
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < R; ++r) {
        if constexpr (kExcess) sums[g][r] = V::sub_i32(sums[g][r], excess[g]);
        if constexpr (!S::kSigned && kScaled)
          total[g][r] = V::add_scaled(total[g][r], dots[g][r], scale[g]);
        else if constexpr (!S::kSigned)
          total[g][r] = V::add_i32(total[g][r], V::widen(dots[g][r]));
        else if constexpr (kScaled)
          total[g][r] = V::add_i32(total[g][r], V::mul_i32(scale[g], sums[g][r]));
        else
          total[g][r] = V::add_i32(total[g][r], sums[g][r]);
      }
  });
}

// What totals start with; `part` is empty, or the number of the part they cover.
template <class V, class S, int G, int R, class Source, class... Part>
[[gnu::always_inline]] inline void start(const Source* s, typename V::I32 (*total)[R],
                                         Part... part) {
  for (int g = 0; g < G; ++g) {
    auto first = V::zero_i32();
    if constexpr (S::kSigned && V::kRaised && !Source::kInPlace) first = s[g].start(part...);
    for (int r = 0; r < R; ++r) total[g][r] = first;
  }
}

// sums[g][r] = sum of offset * the sum of its part's activations
template <class V, class S, int G, int R, class Source>
[[gnu::always_inline]] inline void sum_offsets(const Source* s, const Q8Block256* const* a,
                                               typename V::I32 (*sums)[R]) {
  for (int g = 0; g < G; ++g)
    for (int r = 0; r < R; ++r) sums[g][r] = V::zero_i32();
  repeat<V::kUnrolled, 128 / S::kPart>([&](auto j) __attribute__((always_inline)) {
    typename V::I32 pair[G];
    for (int g = 0; g < G; ++g) pair[g] = s[g].offset_pair(j);
    for (int r = 0; r < R; ++r) {
      std::int32_t both;
      __builtin_memcpy(&both, (S::kPart == 32 ? a[r]->wide_sums : a[r]->sums) + 2 * j, 4);
      for (int g = 0; g < G; ++g) sums[g][r] = V::add_pairs(sums[g][r], pair[g], both);
    }
  });
}

// acc[g][r] += factor[g] * a[r].scale * total[g][r]
template <class V, int G, int R, class A>
[[gnu::always_inline]] inline void fold(const typename V::F32* factor, const A* const* a,
                                        const typename V::I32 (*total)[R],
                                        typename V::F32 (*acc)[R]) {
  for (int r = 0; r < R; ++r) {
    const auto scale = V::broadcast(a[r]->scale);
    for (int g = 0; g < G; ++g)
      acc[g][r] = V::fma(V::mul(factor[g], scale), V::to_f32(total[g][r]), acc[g][r]);
  }
}

// Takes a block's totals, scaled but without their offsets, into acc.
template <class V, class S, int G, int R, class Source>
[[gnu::always_inline]] inline void finish_block(const Source* s, const Q8Block256* const* a,
                                                typename V::I32 (*total)[R],
                                                typename V::F32 (*acc)[R]) {
  typename V::I32 offsets[G][R];
  if constexpr (S::kOffset != Offset::kNone) sum_offsets<V, S, G, R>(s, a, offsets);
  if constexpr (S::kOffset == Offset::kScaled)
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < R; ++r) total[g][r] = V::sub_i32(total[g][r], offsets[g][r]);
  typename V::F32 factor[G];
  for (int g = 0; g < G; ++g) factor[g] = s[g].factor();
  fold<V, G, R>(factor, a, total, acc);
  if constexpr (S::kOffset == Offset::kOwnFactor) {
    for (int g = 0; g < G; ++g) factor[g] = V::mul(s[g].offset_factor(), V::broadcast(-1.0f));
    fold<V, G, R>(factor, a, offsets, acc);
  }
}

template <class V, class S, int G, int R, class Source>
[[gnu::always_inline]] inline void add_products(const Source* s, int /*parts*/,
                                                const Q8Block256* const* a,
                                                typename V::F32 (*acc)[R]) {
  typename V::I32 total[G][R];
  start<V, S, G, R>(s, total);
  repeat<V::kUnrolled && Source::kInPlace, 256 / S::kPart>([&](
      auto part) __attribute__((always_inline)) {
    const std::int8_t* q[R];
    for (int r = 0; r < R; ++r) q[r] = a[r]->q + part * S::kPart;
    typename V::I32 scale[G];
    for (int g = 0; g < G; ++g) scale[g] = s[g].scale(part);
    add_part<V, S, true, G, R>(s, part * (S::kPart / 4), q, scale, total);
  });
  if constexpr (kInTwoRows<V, Source, R>) separate_rows<V, G, R>(total);
  finish_block<V, S, G, R>(s, a, total, acc);
}

template <class V, class S, int G, int R, class Source>
[[gnu::always_inline]] inline void add_products(const Source* s, int parts,
                                                const Q8Block32* const* a,
                                                typename V::F32 (*acc)[R]) {
  for (int part = 0; part < parts; ++part) {
    const Q8Block32* block[R];
    const std::int8_t* q[R];
    for (int r = 0; r < R; ++r) {
      block[r] = a[r] + part * S::kPart / 32;
      q[r] = block[r]->q + part * S::kPart % 32;
    }
    typename V::I32 total[G][R];
    start<V, S, G, R>(s, total, part);
    add_part<V, S, false, G, R>(s, part * (S::kPart / 4), q, nullptr, total);
    if constexpr (kInTwoRows<V, Source, R>) separate_rows<V, G, R>(total);
    typename V::F32 factor[G];
    for (int g = 0; g < G; ++g) factor[g] = s[g].part_factor(part);
    fold<V, G, R>(factor, block, total, acc);
    if constexpr (S::kOffset != Offset::kNone)
      for (int g = 0; g < G; ++g) {
        const auto offset = s[g].part_offset(part);
        for (int r = 0; r < R; ++r)
          acc[g][r] = V::fma(offset, V::broadcast(block[r]->scaled_sum), acc[g][r]);
      }
  }
}

// acc[g][r] += the products of one block of format F
template <class V, class F, int G, int R>
[[gnu::always_inline]] inline void multiply_block(const typename V::Weights* w,
                                                  const typename F::Activation* const* a,
                                                  typename V::F32 (*acc)[R]) {
  using S = decltype(shape_of<F>());
  if constexpr (kFloats<F>) {
    for (int g = 0; g < G; ++g) {
      const auto weight = F::template value<V>(w[g]);
      for (int r = 0; r < R; ++r) acc[g][r] = V::fma(weight, V::broadcast(*a[r]), acc[g][r]);
    }
  } else if constexpr (kReadInPlace<F>) {
    InPlace<V, F> sources[G];
    for (int g = 0; g < G; ++g) sources[g] = {w[g]};
    add_products<V, S, G, R>(sources, F::kElements / S::kPart, a, acc);
  } else {
    Panel<V> panels[G];
    FromPanel<V> sources[G];
    for (int g = 0; g < G; ++g) {
      unpack<V, F>(w[g], 0, panels[g]);
      sources[g] = {&panels[g]};
    }
    add_products<V, S, G, R>(sources, F::kElements / S::kPart, a, acc);
  }
}

}  // namespace strata
