#include "device/device.h"

namespace strata {

Bytes state_layer_bytes(const CacheSpec& spec) {
  return round_up<Bytes>(static_cast<Bytes>(spec.state_size) * sizeof(float), 64);
}

Bytes cache_block_bytes(const CacheGroupSpec& group, CacheFormat format) {
  if (group.spec.state_size > 0)
    return static_cast<Bytes>(group.layers) * state_layer_bytes(group.spec);
  const Bytes element = format == CacheFormat::kF32 ? 4 : 2;
  const auto per_token = static_cast<Bytes>(group.spec.kv_heads) *
                         (static_cast<Bytes>(group.spec.key_size) +
                          round_up<Bytes>(static_cast<Bytes>(group.spec.value_size), 8));
  return static_cast<Bytes>(group.layers) * kBlockTokens * per_token * element;
}

}  // namespace strata
