// Attention over a paged cache, over a vocabulary V and a scheme E of cache elements. Online
// softmax (Milakov & Gimelshein 2018) over partitions of 256 absolute positions, folded left: a
// row's result depends on its own visible positions alone, whoever shares its tile and whoever
// computes its partitions.
#pragma once

#include "device/cpu/kernels.h"
#include "device/cpu/kernels/cache_elements.h"
#include "device/cpu/kernels/vector_math.h"

namespace strata {

// out[q][n] = (kFresh ? 0 : out[q][n]) + sum over k < count, ascending, of a[q][k] * b[k][n], for
// N vectors beside each other; rows b[k] are `b_stride` bytes apart. Meanwhile asks for the bytes
// from `ahead` on. Not inlined, so that the loop has all registers to itself.
template <class V, class E, int Q, int N, bool kFresh>
[[gnu::noinline]] void multiply_add_panel(const float* const* a, const std::uint8_t* b,
                                          std::int64_t b_stride, std::int64_t count,
                                          const std::uint8_t* ahead, float* out,
                                          std::int64_t out_stride) {
  constexpr int kBytes = sizeof(typename E::Element);
  constexpr int kWidth = V::kWidth;
  const float* factors[Q];
  typename V::F32 acc[Q][N];
  for (int q = 0; q < Q; ++q) {
    factors[q] = a[q];
    for (int n = 0; n < N; ++n)
      acc[q][n] = kFresh ? V::zero() : V::load(out + q * out_stride + kWidth * n);
  }
  for (std::int64_t k = 0; k < count; ++k, b += b_stride, ahead += kCacheGroup * kBytes) {
    __builtin_prefetch(ahead);
    typename V::F32 column[N];
    for (int n = 0; n < N; ++n) column[n] = E::load(b + n * kWidth * kBytes);
    for (int q = 0; q < Q; ++q) {
      const auto factor = V::broadcast(factors[q][k]);
      for (int n = 0; n < N; ++n) acc[q][n] = V::fma(factor, column[n], acc[q][n]);
    }
  }
  for (int q = 0; q < Q; ++q)
    for (int n = 0; n < N; ++n) V::store(out + q * out_stride + kWidth * n, acc[q][n]);
}

template <class V>
float exp_of(float x) {
  float lanes[8];
  V::store(lanes, exp<V>(V::broadcast(x)));
  return lanes[0];
}

// What a row sees of the partition from `base` on; nothing where first > last.
[[gnu::always_inline]] inline PositionRange seen_of_partition(const PositionRange& seen,
                                                              Position base) {
  const Position end = base + kAttentionPartition - 1;
  return {seen.first > base ? seen.first : base, seen.last < end ? seen.last : end};
}

// The partial results of a tile over one partition. Query q is head q % query_heads of row
// q / query_heads.
template <class V, class E>
class AttentionPartial {
 public:
  AttentionPartial(const AttentionTask& task, Position base, float* scores, float* partial)
      : t_(task),
        queries_(task.rows * task.query_heads),
        padded_(padded_value_size(task.value_size)),
        base_(base),
        scores_(scores),
        values_(partial),
        statistics_(reinterpret_cast<AttentionStatistics*>(partial + queries_ * padded_)) {}

  void run() {
    PositionRange all = {base_ + kAttentionPartition, base_ - 1};
    for (int row = 0; row < t_.rows; ++row) {
      const PositionRange seen = seen_by(row);
      if (seen.first > seen.last) continue;
      all.first = seen.first < all.first ? seen.first : all.first;
      all.last = seen.last > all.last ? seen.last : all.last;
    }
    score(all);
    for (int q = 0; q < queries_; ++q) weigh(q);
    if (t_.values_in_keys) {
      for (int row = 0; row < t_.rows; ++row)
        for_queries(row, row + 1, [&]<int Q>(int q) { add_key_values<Q>(q, seen_by(row)); });
    } else {
      add_values(all);
    }
  }

 private:
  using F32 = typename V::F32;
  static constexpr int kBytes = sizeof(typename E::Element);
  static constexpr int kKeyStride = kCacheBlockTokens * kBytes;  // between elements of the keys
  using Wide = typename V::Wide;
  using WideE = typename E::template Over<Wide>;
  static constexpr int kWidth = Wide::kWidth;
  // Vectors beside each other for Q queries: enough sums at a time to hide an addition's latency.
  template <int Q>
  static constexpr int kColumns = Q <= 2 ? kCacheBlockTokens / kWidth : 2;

  PositionRange seen_by(int row) const { return seen_of_partition(t_.seen[row], base_); }

  const std::uint8_t* keys_of(Position position) const {
    const auto index = static_cast<std::uint64_t>(t_.table[position / kCacheBlockTokens].value);
    return t_.cache + index * t_.block_bytes;
  }
  const std::uint8_t* values_of(Position position) const {
    return keys_of(position) + t_.value_offset;
  }

  // Calls f<n>(first query) for the queries of rows [first, last), up to six at a time.
  template <class F>
  void for_queries(int first, int last, F f) const {
    int q = first * t_.query_heads;
    const int end = last * t_.query_heads;
    for (; end - q >= 10; q += 6) f.template operator()<6>(q);
    for (; end - q >= 7; q += 4) f.template operator()<4>(q);
    switch (end - q) {
      case 6: return f.template operator()<6>(q);
      case 5: return f.template operator()<5>(q);
      case 4: return f.template operator()<4>(q);
      case 3: return f.template operator()<3>(q);
      case 2: return f.template operator()<2>(q);
      case 1: return f.template operator()<1>(q);
      default: return;
    }
  }

  float* scores_of(int q) const { return scores_ + q * kAttentionPartition; }

  // Dot products with whole blocks; those of positions out of sight are whatever the cache makes of
  // them.
  void score(PositionRange all) {
    const Position first = all.first / kCacheBlockTokens * kCacheBlockTokens;
    for (Position p = first; p <= all.last; p += kCacheBlockTokens) {
      const Position next = p + kCacheBlockTokens;
      const std::uint8_t* keys = keys_of(p);
      const std::uint8_t* ahead = next <= all.last ? keys_of(next) : values_of(first);
      for_queries(0, t_.rows, [&]<int Q>(int q) {
        score_queries<Q>(q, keys, q == 0 ? ahead : keys, p - base_);
      });
    }
  }

  template <int Q>
  void score_queries(int first, const std::uint8_t* keys, const std::uint8_t* ahead, int slot) {
    constexpr int kN = kColumns<Q>;
    const float* query[Q];
    for (int q = 0; q < Q; ++q)
      query[q] = t_.query + (first + q) / t_.query_heads * t_.query_stride +
                 std::int64_t{(first + q) % t_.query_heads} * t_.head_size;
    float* scores = scores_of(first) + slot;
    for (int t = 0; t < kCacheBlockTokens; t += kWidth * kN) {
      if constexpr (E::kScaled)
        score_scaled(query, keys, t, ahead, scores + t);
      else
        multiply_add_panel<Wide, WideE, Q, kN, true>(query, keys + t * kBytes, kKeyStride,
                                                     t_.head_size, ahead, scores + t,
                                                     kAttentionPartition);
    }
  }

  // scores = sum over groups, ascending, of scale * sum over the group's elements
  template <int Q>
  void score_scaled(const float* (&query)[Q], const std::uint8_t* keys, int token,
                    const std::uint8_t* ahead, float* scores) const {
    constexpr int kN = kColumns<Q>;
    constexpr int kVectors = kN * kWidth / 8;
    const std::uint8_t* scales = keys + t_.head_size * kKeyStride + token * 2;
    F32 dot[Q][kVectors];
    for (auto& row : dot)
      for (F32& x : row) x = V::zero();
    for (int d = 0; d < t_.head_size; d += kCacheGroup, scales += kCacheBlockTokens * 2) {
      const float* part[Q];
      for (int q = 0; q < Q; ++q) part[q] = query[q] + d;
      const int count = t_.head_size - d < kCacheGroup ? t_.head_size - d : kCacheGroup;
      float sums[Q][8 * kVectors];
      multiply_add_panel<Wide, WideE, Q, kN, true>(part, keys + d * kKeyStride + token * kBytes,
                                                   kKeyStride, count, ahead + d * kKeyStride,
                                                   sums[0], 8 * kVectors);
      for (int n = 0; n < kVectors; ++n) {
        const F32 scale = V::load_f16(scales + n * 16);
        for (int q = 0; q < Q; ++q) dot[q][n] = V::fma(scale, V::load(sums[q] + 8 * n), dot[q][n]);
      }
    }
    for (int q = 0; q < Q; ++q)
      for (int n = 0; n < kVectors; ++n)
        V::store(scores + q * kAttentionPartition + 8 * n, dot[q][n]);
  }

  F32 score_of(F32 dot) const {
    const F32 s = V::mul(dot, V::broadcast(t_.scale));
    if (!(t_.softcap > 0)) return s;
    const F32 cap = V::broadcast(t_.softcap);
    return V::mul(cap, tanh<V>(V::div(s, cap)));
  }

  // Turns a query's dot products into exp(score - the highest score), 0 out of sight.
  void weigh(int q) {
    const PositionRange seen = seen_by(q / t_.query_heads);
    if (seen.first > seen.last) return;
    float* s = scores_of(q) - base_;
    const Position start = seen.first / 8 * 8;
    // A NaN may get lost here, but not from the sum of exponentials.
    const F32 least = V::broadcast(-__builtin_inff());
    F32 most = least;
    for (Position p = start; p <= seen.last; p += 8) {
      const F32 score = score_of(V::load(s + p));
      V::store(s + p, score);
      most = V::max(V::select_range(seen.first - p, seen.last - p + 1, score, least), most);
    }
    float tops[8];
    V::store(tops, most);
    float top = tops[0];
    for (const float x : tops) top = x > top ? x : top;
    F32 sums = V::zero();
    for (Position p = start; p <= seen.last; p += 8) {
      const F32 e = exp<V>(V::sub(V::load(s + p), V::broadcast(top)));
      const F32 weight = V::select_range(seen.first - p, seen.last - p + 1, e, V::zero());
      V::store(s + p, weight);
      sums = V::add(sums, weight);
    }
    statistics_[q] = {top, sum_lanes<V>(sums)};
  }

  // values = sum of weight * value, positions ascending. Rows that see the same part of a block
  // take it together.
  void add_values(PositionRange all) {
    for (std::int64_t i = 0; i < queries_ * padded_; i += 8) V::store(values_ + i, V::zero());
    const Position first = all.first / kCacheBlockTokens * kCacheBlockTokens;
    for (Position p = first; p <= all.last; p += kCacheBlockTokens) {
      const Position next = p + kCacheBlockTokens;
      const std::uint8_t* ahead = next <= all.last ? values_of(next) : next_partition(next);
      for (int row = 0; row < t_.rows;) {
        const PositionRange part = seen_of_block(row, p);
        int end = row + 1;
        while (end < t_.rows && same(seen_of_block(end, p), part)) ++end;
        if (part.first <= part.last)
          for_queries(row, end, [&]<int Q>(int q) {
            add_block_values<Q>(q, part, q == 0 ? ahead : values_of(p));
          });
        row = end;
      }
    }
  }

  const std::uint8_t* next_partition(Position first) const {
    const Position last = t_.seen[t_.rows - 1].last;
    return first <= last ? keys_of(first) : values_of(last);
  }

  PositionRange seen_of_block(int row, Position block) const {
    const PositionRange seen = seen_by(row);
    const Position end = block + kCacheBlockTokens - 1;
    return {seen.first > block ? seen.first : block, seen.last < end ? seen.last : end};
  }
  // How many rows of weights times scales there are room for: none is used without scales.
  static constexpr int scaled_rows(int rows) { return E::kScaled ? rows : 1; }

  static bool same(PositionRange a, PositionRange b) {
    return (a.first == b.first && a.last == b.last) || (a.first > a.last && b.first > b.last);
  }

  template <int Q>
  void add_block_values(int first, PositionRange part, const std::uint8_t* ahead) {
    const int token = part.first % kCacheBlockTokens;
    const int count = part.last - part.first + 1;
    const std::uint8_t* block = values_of(part.first);
    const std::uint8_t* values = block + token * padded_ * kBytes;
    for (std::int64_t d = 0; d < padded_; d += kCacheGroup, ahead += kCacheGroup * kKeyStride) {
      const float* weights[Q];
      for (int q = 0; q < Q; ++q) weights[q] = scores_of(first + q) + (part.first - base_);
      float scaled[scaled_rows(Q)][kCacheBlockTokens];
      if constexpr (E::kScaled) {
        const std::uint8_t* scales = block + padded_ * kKeyStride + d * 2;
        for (int q = 0; q < Q; ++q) {
          scale_weights(weights[q] - token, scales, scaled[q]);
          weights[q] = scaled[q] + token;
        }
      }
      const std::int64_t end = d + kCacheGroup < padded_ ? d + kCacheGroup : padded_;
      std::int64_t n = d;
      const auto add = [&]<class W, int N>() {
        constexpr int kStep = N * W::kWidth;
        for (; n + kStep <= end; n += kStep)
          multiply_add_panel<W, typename E::template Over<W>, Q, N, false>(
              weights, values + n * kBytes, padded_ * kBytes, count, ahead,
              values_ + first * padded_ + n, padded_);
      };
      add.template operator()<Wide, kColumns<Q>>();
      add.template operator()<V, 1>();
    }
  }

  // A block's weights times its scales of one group of elements.
  static void scale_weights(const float* weights, const std::uint8_t* scales, float* out) {
    for (int t = 0; t < kCacheBlockTokens; t += 8)
      V::store(out + t, V::mul(V::load(weights + t), V::load_f16(scales + t * 2)));
  }

  // As add_values with values that lie in the keys: a lane sums every eighth position.
  template <int Q>
  void add_key_values(int first, PositionRange seen) {
    if (seen.first > seen.last) return;
    for (std::int64_t d = 0; d < padded_; d += kCacheGroup) {
      const float* weights[Q];
      for (int q = 0; q < Q; ++q) weights[q] = scores_of(first + q) - base_;
      float scaled[scaled_rows(Q)][kAttentionPartition];
      if constexpr (E::kScaled) {
        for (int q = 0; q < Q; ++q) {
          for (Position p = seen.first / kCacheBlockTokens * kCacheBlockTokens; p <= seen.last;
               p += kCacheBlockTokens)
            scale_weights(weights[q] + p, keys_of(p) + t_.head_size * kKeyStride + d * 2,
                          scaled[q] + p - base_);
          weights[q] = scaled[q] - base_;
        }
      }
      for (std::int64_t e = d; e < d + kCacheGroup && e < padded_; e += 8) {
        F32 lanes[Q][8];
        for (int i = 0; i < 8; i += 2) add_key_pair<Q>(weights, e + i, seen, i, lanes);
        for (int q = 0; q < Q; ++q)
          V::store(values_ + (first + q) * padded_ + e, V::sums_of_lanes(lanes[q]));
      }
    }
  }

  // lanes[q][i] and [i + 1]: elements d and d + 1, 0 beyond the values.
  template <int Q>
  void add_key_pair(const float* const (&weights)[Q], std::int64_t d, PositionRange seen, int i,
                    F32 (&lanes)[Q][8]) const {
    F32 acc[Q][2];
    for (auto& row : acc) row[0] = row[1] = V::zero();
    const auto add = [&](Position p, auto visible) {
      const std::uint8_t* keys = keys_of(p) + d * kKeyStride + p % kCacheBlockTokens * kBytes;
      const F32 value[2] = {visible(E::load(keys)), visible(E::load(keys + kKeyStride))};
      for (int q = 0; q < Q; ++q) {
        const F32 weight = V::load(weights[q] + p);
        for (int n = 0; n < 2; ++n) acc[q][n] = V::fma(weight, value[n], acc[q][n]);
      }
    };
    if (d < t_.value_size) {
      for (Position p = seen.first / 8 * 8; p <= seen.last; p += 8) {
        if (p >= seen.first && p + 7 <= seen.last)
          add(p, [](F32 x) { return x; });
        else
          add(p, [&](F32 x) {
            return V::select_range(seen.first - p, seen.last - p + 1, x, V::zero());
          });
      }
    }
    for (int q = 0; q < Q; ++q) {
      lanes[q][i] = acc[q][0];
      lanes[q][i + 1] = d + 1 < t_.value_size ? acc[q][1] : V::zero();
    }
  }

  const AttentionTask& t_;
  const std::int64_t queries_;
  const std::int64_t padded_;
  const Position base_;
  float* const scores_;
  float* const values_;
  AttentionStatistics* const statistics_;
};

template <class V, class E>
void attention_partial(const AttentionTask& task, Position base, float* scores, float* partial) {
  AttentionPartial<V, E>(task, base, scores, partial).run();
}

// f(row, head, its index, its output, its statistics)
template <class F>
void each_query(const AttentionTask& t, F f) {
  for (int row = 0; row < t.rows; ++row)
    for (int head = 0; head < t.query_heads; ++head)
      f(row, head, row * t.query_heads + head,
        t.out + row * t.out_stride + std::int64_t{head} * t.value_size,
        t.statistics + row * t.statistics_stride + head);
}

// Folds a partition's partial result into what the task's queries have so far: their statistics,
// and in `out` the sum that belongs to these.
template <class V>
void attention_fold(const AttentionTask& task, Position base, const float* partial) {
  const std::int64_t padded = padded_value_size(task.value_size);
  const float* fresh_statistics = partial + task.rows * task.query_heads * padded;
  each_query(task, [&](int row, int, int q, float* out, AttentionStatistics* all) {
    const PositionRange seen = seen_of_partition(task.seen[row], base);
    if (seen.first > seen.last) return;
    const auto& fresh = reinterpret_cast<const AttentionStatistics*>(fresh_statistics)[q];
    const float* values = partial + q * padded;
    if (task.seen[row].first >= base) {
      *all = fresh;
      __builtin_memcpy(out, values, static_cast<std::size_t>(task.value_size) * sizeof(float));
      return;
    }
    const float maximum = fresh.maximum > all->maximum ? fresh.maximum : all->maximum;
    const float fresh_factor = exp_of<V>(fresh.maximum - maximum);
    const float old_factor = exp_of<V>(all->maximum - maximum);
    *all = {maximum, __builtin_fmaf(all->sum, old_factor, fresh.sum * fresh_factor)};
    map2<V>(out, values, task.value_size, out, [&](auto old, auto x) {
      return V::fma(old, V::broadcast(old_factor), V::mul(x, V::broadcast(fresh_factor)));
    });
  });
}

// Divides by the sum of exponentials, a sink's included.
template <class V>
void attention_finish(const AttentionTask& task) {
  each_query(task, [&](int, int head, int, float* out, AttentionStatistics* all) {
    float inverse = 1.0f / all->sum;
    if (task.sinks != nullptr) {
      const float sink = task.sinks[head];
      const float maximum = sink > all->maximum ? sink : all->maximum;
      const float factor = exp_of<V>(all->maximum - maximum);
      inverse = factor / __builtin_fmaf(all->sum, factor, exp_of<V>(sink - maximum));
    }
    map2<V>(out, out, task.value_size, out,
            [&](auto x, auto) { return V::mul(x, V::broadcast(inverse)); });
  });
}

}  // namespace strata
