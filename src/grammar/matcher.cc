#include "grammar/matcher.h"

namespace strata {

GrammarMatcher::GrammarMatcher(Grammar grammar) : grammar_(std::move(grammar)) {
  Simulation simulation(*grammar_);
  configuration_ = simulation.leave(simulation.start());
  too_ambiguous_ = simulation.overflowed();
}

bool GrammarMatcher::read(std::string_view bytes) {
  // Short simulations, so that what they remember stays small.
  constexpr std::size_t kPiece = 64;
  Simulation simulation(*grammar_);
  while (!bytes.empty() && !failed()) {
    simulation.clear();
    Simulation::Set set = simulation.enter(configuration_);
    for (const char c : bytes.substr(0, kPiece))
      set = simulation.step(set, static_cast<std::uint8_t>(c));
    configuration_ = simulation.leave(set);
    too_ambiguous_ = simulation.overflowed();
    bytes.remove_prefix(std::min(kPiece, bytes.size()));
  }
  return !failed();
}

}  // namespace strata
