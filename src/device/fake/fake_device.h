// A device that computes no model: it keeps the tokens themselves in the cache blocks, or a hash of
// them in a recurrent state, and makes logits that name one token, a hash of every token the row
// may see. Wrong sharing, copying or freeing of blocks therefore changes answers, at thousands of
// steps per second.
#pragma once

#include <memory>

#include "device/device.h"

namespace strata {

std::unique_ptr<Device> make_fake_device();

// The token the fake device's logits name after `visible` tokens, the last one computed last.
TokenId fake_next_token(std::span<const TokenId> visible, std::int32_t vocabulary);

}  // namespace strata
