// Attention over a paged cache, over a vocabulary V and a cache element E. Online softmax
// (Milakov & Gimelshein 2018) over partitions of 256 absolute positions, folded left: a row's
// result depends on its own visible positions alone.
#pragma once

#include "device/cpu/kernels.h"
#include "device/cpu/kernels/vector_math.h"

namespace strata {

constexpr int kCacheBlockTokens = 32;

template <class V>
struct CacheF32 {
  static constexpr int kBytes = 4;
  static typename V::F32 load(const std::uint8_t* p) {
    return V::load(reinterpret_cast<const float*>(p));
  }
};
template <class V>
struct CacheF16 {
  static constexpr int kBytes = 2;
  static typename V::F32 load(const std::uint8_t* p) { return V::load_f16(p); }
};

template <class V, class E>
class Attention {
 public:
  explicit Attention(const AttentionTask& task)
      : t_(task),
        padded_(padded_value_size(task.value_size)),
        scores_(task.scratch),
        running_(scores_ + task.query_heads * kAttentionPartition),
        statistics_(reinterpret_cast<Statistics*>(running_ + task.query_heads * padded_)) {}

  void run() {
    bool started = false;
    for (Position base = t_.first / kAttentionPartition * kAttentionPartition; base <= t_.last;
         base += kAttentionPartition) {
      base_ = base;
      from_ = base > t_.first ? base : t_.first;
      const Position end = base + kAttentionPartition - 1;
      to_ = end < t_.last ? end : t_.last;
      score();
      for (int h = 0; h < t_.query_heads; ++h) weigh(h, started);
      int h = 0;
      for (; h + 4 <= t_.query_heads; h += 4) add_values_of<4>(h);
      for (; h < t_.query_heads; ++h) add_values_of<1>(h);
      started = true;
    }
    finish();
  }

 private:
  // Of one head: maximum and sum so far, and what the newest partition and the older ones are to be
  // multiplied by. `old_factor` is 0 for the first partition, when there is nothing older.
  struct Statistics {
    float maximum;
    float sum;
    float new_factor;
    float old_factor;
  };

  const std::uint8_t* block(Position position) const {
    const auto index = static_cast<std::uint64_t>(t_.table[position / kCacheBlockTokens].value);
    return t_.cache + index * t_.block_bytes;
  }

  // Scores of positions [from_, to_], eight at a time; lanes out of sight hold whatever the cache
  // does.
  void score() {
    for (Position p = from_ / 8 * 8; p <= to_; p += 8) {
      const std::uint8_t* keys = block(p) + (p % kCacheBlockTokens) * E::kBytes;
      int h = 0;
      for (; h + 4 <= t_.query_heads; h += 4) score_heads<4>(keys, h, p - base_);
      for (; h < t_.query_heads; ++h) score_heads<1>(keys, h, p - base_);
    }
  }

  template <int H>
  void score_heads(const std::uint8_t* keys, int first_head, int slot) {
    typename V::F32 dot[H];
    for (int h = 0; h < H; ++h) dot[h] = V::zero();
    const float* query = t_.query + first_head * t_.head_size;
    for (int d = 0; d < t_.head_size; ++d) {
      const auto key = E::load(keys + d * kCacheBlockTokens * E::kBytes);
      for (int h = 0; h < H; ++h)
        dot[h] = V::fma(V::broadcast(query[h * t_.head_size + d]), key, dot[h]);
    }
    for (int h = 0; h < H; ++h) {
      auto s = V::mul(dot[h], V::broadcast(t_.scale));
      if (t_.softcap > 0) {
        const auto cap = V::broadcast(t_.softcap);
        s = V::mul(cap, tanh<V>(V::div(s, cap)));
      }
      V::store(scores_ + (first_head + h) * kAttentionPartition + slot, s);
    }
  }

  // Turns a head's scores into exp(score - the partition's maximum), 0 out of sight, and finds how
  // the partition folds into what came before.
  void weigh(int head, bool started) {
    float* s = scores_ + head * kAttentionPartition;
    float top = s[from_ - base_];
    for (Position p = from_; p <= to_; ++p) {
      const float score = s[p - base_];
      top = !(score <= top) ? score : top;  // a NaN stays
    }
    auto sums = V::zero();
    for (Position p = from_ / 8 * 8; p <= to_; p += 8) {
      const auto e = exp<V>(V::sub(V::load(s + p - base_), V::broadcast(top)));
      const auto seen = V::select_range(from_ - p, to_ - p + 1, e, V::zero());
      V::store(s + p - base_, seen);
      sums = V::add(sums, seen);
    }
    const float sum = sum_lanes<V>(sums);
    Statistics& all = statistics_[head];
    if (!started) {
      all = {top, sum, 1.0f, 0.0f};
      return;
    }
    const float maximum = top > all.maximum ? top : all.maximum;
    all.new_factor = scalar_exp(top - maximum);
    all.old_factor = scalar_exp(all.maximum - maximum);
    all.sum = __builtin_fmaf(all.sum, all.old_factor, sum * all.new_factor);
    all.maximum = maximum;
  }

  static float scalar_exp(float x) {
    float lanes[8];
    V::store(lanes, exp<V>(V::broadcast(x)));
    return lanes[0];
  }

  template <int H>
  void add_values_of(int first_head) {
    if (t_.values_in_keys)
      add_key_values<H>(first_head);
    else
      add_values<H>(first_head);
  }

  // running = running * old_factor + new_factor * sum of weight * value, positions ascending
  template <int H>
  void add_values(int first_head) {
    for (std::int64_t d = 0; d < padded_; d += 8) {
      typename V::F32 acc[H];
      for (int h = 0; h < H; ++h) acc[h] = V::zero();
      Position p = from_;
      while (p <= to_) {
        const Position block_end = p / kCacheBlockTokens * kCacheBlockTokens + kCacheBlockTokens;
        const Position stop = block_end <= to_ ? block_end : to_ + 1;
        const std::uint8_t* values = block(p) + t_.value_offset + d * E::kBytes;
        for (; p < stop; ++p) {
          const auto value = E::load(values + (p % kCacheBlockTokens) * padded_ * E::kBytes);
          for (int h = 0; h < H; ++h)
            acc[h] =
                V::fma(V::broadcast(scores_[(first_head + h) * kAttentionPartition + p - base_]),
                       value, acc[h]);
        }
      }
      for (int h = 0; h < H; ++h) fold(first_head + h, d, acc[h]);
    }
  }

  // As add_values with values that lie in the keys: a lane sums every eighth position.
  template <int H>
  void add_key_values(int first_head) {
    for (std::int64_t d = 0; d < padded_; d += 8) {
      float sums[H][8] = {};
      for (std::int64_t i = 0; i < 8 && d + i < t_.value_size; ++i) {
        typename V::F32 acc[H];
        for (int h = 0; h < H; ++h) acc[h] = V::zero();
        for (Position p = from_ / 8 * 8; p <= to_; p += 8) {
          const auto stored =
              E::load(block(p) + ((d + i) * kCacheBlockTokens + p % kCacheBlockTokens) * E::kBytes);
          const auto value = V::select_range(from_ - p, to_ - p + 1, stored, V::zero());
          for (int h = 0; h < H; ++h)
            acc[h] = V::fma(V::load(scores_ + (first_head + h) * kAttentionPartition + p - base_),
                            value, acc[h]);
        }
        for (int h = 0; h < H; ++h) sums[h][i] = sum_lanes<V>(acc[h]);
      }
      for (int h = 0; h < H; ++h) fold(first_head + h, d, V::load(sums[h]));
    }
  }

  void fold(int head, std::int64_t d, typename V::F32 acc) {
    const Statistics& s = statistics_[head];
    float* running = running_ + head * padded_ + d;
    const auto fresh = V::mul(acc, V::broadcast(s.new_factor));
    V::store(running, s.old_factor == 0
                          ? fresh
                          : V::fma(V::load(running), V::broadcast(s.old_factor), fresh));
  }

  // 1 over a head's sum of exponentials, a sink's included, in the scale of its running values.
  float inverse_sum(int head) const {
    const Statistics& s = statistics_[head];
    if (t_.sinks == nullptr) return 1.0f / s.sum;
    const float sink = t_.sinks[head];
    const float maximum = sink > s.maximum ? sink : s.maximum;
    const float factor = scalar_exp(s.maximum - maximum);
    return factor / __builtin_fmaf(s.sum, factor, scalar_exp(sink - maximum));
  }

  void finish() {
    for (int h = 0; h < t_.query_heads; ++h) {
      const auto inverse = V::broadcast(inverse_sum(h));
      for (std::int64_t d = 0; d < t_.value_size; d += 8) {
        const auto out = V::mul(V::load(running_ + h * padded_ + d), inverse);
        const std::int64_t left = t_.value_size - d;
        float* target = t_.out + h * t_.value_size + d;
        if (left >= 8)
          V::store(target, out);
        else
          store_part<V>(target, left, out);
      }
    }
  }

  const AttentionTask& t_;
  const std::int64_t padded_;
  float* scores_;
  float* running_;
  Statistics* statistics_;
  Position base_ = 0;
  Position from_ = 0;
  Position to_ = 0;
};

template <class V, class E>
void attention(const AttentionTask& task) {
  Attention<V, E>(task).run();
}

}  // namespace strata
