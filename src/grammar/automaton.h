// A grammar as an automaton over bytes with a stack: what GrammarBuilder compiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace strata {

constexpr std::uint32_t kNoState = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

// Reads the bytes of one answer from `start`, where a return with an empty stack accepts. No path
// without a byte leads from a state to itself on the same stack, and the body of a repetition takes
// at least a byte, so what can be reached without a byte is finite.
struct Automaton {
  enum class Kind : std::uint8_t {
    kBytes,   // takes a byte of one of `count` edges from `first`; they are disjoint
    kSplit,   // goes to all of `count` targets from `first`
    kCall,    // pushes `first`, unless it is kNoState, and goes to `target`
    kRepeat,  // pushes repetition `first` with no rounds done and goes to its body, or passes by
    kReturn,  // pops: goes to a pushed state, or ends a round of a pushed repetition
  };
  struct State {
    Kind kind = Kind::kReturn;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t target = kNoState;
    // The body of a repetition the state belongs to, which then is on top of the stack; kNoState
    // for states outside of such.
    std::uint32_t body = kNoState;
  };
  struct Edge {
    std::uint8_t first = 0;
    std::uint8_t last = 0;
    std::uint32_t target = kNoState;
  };
  struct Repetition {
    std::uint32_t body = 0;  // index of `bodies`
    std::uint32_t next = kNoState;
    std::uint32_t min = 0;
    std::uint32_t max = kUnbounded;
  };

  std::vector<State> states;
  std::vector<Edge> edges;
  std::vector<std::uint32_t> targets;
  std::vector<Repetition> repetitions;
  std::vector<std::uint32_t> bodies;  // the states they start with
  std::uint32_t start = kNoState;
};

}  // namespace strata
