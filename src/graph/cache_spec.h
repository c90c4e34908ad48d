// What one layer keeps of a sequence: keys and values of every token, or one state of fixed size.
#pragma once

#include <compare>
#include <cstdint>

namespace strata {

// Layers with equal specs share a cache group and so a block table.
struct CacheSpec {
  std::int32_t kv_heads = 0;
  std::int32_t key_size = 0;    // elements of a head's key
  std::int32_t value_size = 0;  // elements of a head's value; 0: values are part of the keys
  std::int32_t window = 0;      // 0: every earlier position stays visible
  std::int32_t state_size = 0;  // f32 of a recurrent state, which stands instead of keys and values
  auto operator<=>(const CacheSpec&) const = default;
};

struct CacheGroupSpec {
  CacheSpec spec;
  std::int32_t layers = 0;
};

}  // namespace strata
