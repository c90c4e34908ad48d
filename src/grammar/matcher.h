// Follows one answer through a grammar.
#pragma once

#include <memory>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/simulation.h"

namespace strata {

// Holds no more than the stacks in use, so copies are cheap. Not thread-safe.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(Grammar grammar);

  // Reads more of the answer. False where no text of the grammar starts so, or where the grammar is
  // too ambiguous to follow; nothing is read after that.
  bool read(std::string_view bytes);
  bool failed() const { return configuration_.threads.empty(); }
  bool too_ambiguous() const { return too_ambiguous_; }
  // Whether what was read may be the whole answer, and whether it must.
  bool done() const { return configuration_.done(); }
  bool ended() const { return configuration_.ended(); }

  const Configuration& configuration() const { return configuration_; }

 private:
  Grammar grammar_;
  Configuration configuration_;
  bool too_ambiguous_ = false;
};

}  // namespace strata
