// How much the schemas of one request may cost.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>

#include "base/status.h"

namespace strata {

// Counts the work of all that read schemas of one request, in steps, each about as long as copying
// a small value takes.
class SchemaWork {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 18;

  std::size_t spent() const { return spent_; }
  // Fails where there have been too many, and then always.
  Status spend(std::size_t steps);

 private:
  std::size_t spent_ = 0;
};

// Steps to copy a value. Counts no further than what exceeds `most`.
std::size_t copy_steps(const boost::json::value& value, std::size_t most = SchemaWork::kMost);
std::size_t copy_steps(const boost::json::object& object, std::size_t most = SchemaWork::kMost);

}  // namespace strata
