// What differs from call to call at the head of system prompts, such as billing headers and dates,
// and is left out so that the cache knows the rest again.
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace strata::serve {

// Immutable; safe to use from any thread.
class LineFilter {
 public:
  LineFilter() = default;  // leaves everything
  // One rule per line: how lines to leave out begin; `*` stands for any text. Blank lines and those
  // that begin with # are none.
  explicit LineFilter(std::string_view rules);

  bool empty() const { return rules_.empty(); }
  bool matches(std::string_view line) const;
  // Leaves such lines out of system messages (see read_messages()), and parts that then are empty.
  // Returns how many.
  std::size_t apply(boost::json::array& messages) const;

 private:
  std::size_t apply(std::string& text) const;

  using Rule = std::vector<std::string>;  // texts that follow each other, any text between them
  std::vector<Rule> rules_;
};

}  // namespace strata::serve
