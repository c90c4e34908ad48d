// Where keys and values lie in a cache block. A block holds, layer after layer and key/value head
// after head, first the keys as [element][token], so that a SIMD lane is a position, then the
// values as [token][element], the elements padded to a multiple of 8 with zeros. Where elements
// share scales, those lie behind the keys and behind the values, as [group of elements][token].
#pragma once

#include "device/cpu/kernels.h"
#include "device/device.h"

namespace strata {

struct CacheLayout {
  Bytes key_bytes = 0;   // of one head and layer in a block
  Bytes head_bytes = 0;  // keys and values
  std::int32_t kv_heads = 0;

  CacheLayout(const CacheSpec& spec, CacheFormat format)
      : key_bytes(cache_vector_bytes(spec.key_size, format) * kBlockTokens),
        head_bytes(key_bytes + cache_vector_bytes(spec.value_size, format) * kBlockTokens),
        kv_heads(spec.kv_heads) {}

  Bytes head_offset(std::int32_t layer, std::int32_t head) const {
    return (static_cast<Bytes>(layer) * static_cast<Bytes>(kv_heads) + static_cast<Bytes>(head)) *
           head_bytes;
  }
};

}  // namespace strata
