#include "device/device.h"

namespace strata {

Bytes cache_block_bytes(const CacheGroupSpec& group, CacheFormat format) {
  const Bytes element = format == CacheFormat::kF32 ? 4 : 2;
  const auto per_token = static_cast<Bytes>(group.spec.kv_heads) *
                         (static_cast<Bytes>(group.spec.key_size) +
                          round_up<Bytes>(static_cast<Bytes>(group.spec.value_size), 8));
  return static_cast<Bytes>(group.layers) * kBlockTokens * per_token * element;
}

}  // namespace strata
