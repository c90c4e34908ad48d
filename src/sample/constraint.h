// What an answer must look like, such as a grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/units.h"

namespace strata {

// Which tokens may come next in one answer. Not thread-safe.
class Constraint {
 public:
  virtual ~Constraint() = default;
  // A bit per token, set where it may come next; empty: all may. Valid until the next call.
  // kInvalidArgument where the answer cannot be followed further.
  virtual Result<std::span<const std::uint64_t>> allowed() = 0;
  // Whether that is at hand; it can take long else.
  virtual bool ready() const = 0;
  // Takes a token that was chosen. REQUIRES: allowed.
  virtual void advance(TokenId token) = 0;
  virtual std::unique_ptr<Constraint> clone() const = 0;
};

}  // namespace strata
