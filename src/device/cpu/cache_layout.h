// Where keys and values lie in a cache block. A block holds, layer after layer and key/value head
// after head, first the keys as [element][token], so that a SIMD lane is a position, then the
// values as [token][element], the elements padded to a multiple of 8 with zeros.
#pragma once

#include "device/cpu/kernels.h"
#include "device/device.h"

namespace strata {

struct CacheLayout {
  Bytes element = 2;
  Bytes key_bytes = 0;    // of one head and layer in a block
  Bytes value_bytes = 0;  // likewise
  std::int32_t kv_heads = 0;

  CacheLayout(const CacheSpec& spec, CacheFormat format)
      : element(format == CacheFormat::kF32 ? 4 : 2),
        key_bytes(static_cast<Bytes>(spec.key_size) * kBlockTokens * element),
        value_bytes(static_cast<Bytes>(padded_value_size(spec.value_size)) * kBlockTokens *
                    element),
        kv_heads(spec.kv_heads) {}

  Bytes head_offset(std::int32_t layer, std::int32_t head) const {
    return (static_cast<Bytes>(layer) * static_cast<Bytes>(kv_heads) + static_cast<Bytes>(head)) *
           (key_bytes + value_bytes);
  }
};

}  // namespace strata
