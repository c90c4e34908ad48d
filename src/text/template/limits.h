// What one chat template may cost, so that a hostile one ends in an error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strata::jinja {

struct RenderLimits {
  std::size_t source_bytes = 1 << 20;   // of the template
  int syntax_depth = 200;               // nesting of blocks, and of expressions, in the source
  std::uint64_t steps = 20'000'000;     // nodes evaluated, items visited, pieces of text read
  int call_depth = 1'000;               // nodes being evaluated at one time, macros included
  std::size_t text_bytes = 8 << 20;     // of the output, and of any one string; spans count too
  std::size_t memory_bytes = 32 << 20;  // of all values alive at one time
  int value_depth = 128;                // lists in lists, in inputs and in computed values
  std::size_t range_items = 100'000;    // of range()
};

}  // namespace strata::jinja
