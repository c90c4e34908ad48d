// Runs an automaton: which threads it can be in after some bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/automaton.h"

namespace strata {

// An entry of a stack, above its parent.
struct StackFrame {
  static constexpr std::uint32_t kNone = 0xffffffff;     // no parent
  static constexpr std::uint32_t kBottom = 0xfffffffe;   // node: where the answer ends
  static constexpr std::uint32_t kUnknown = 0xfffffffd;  // node: the rest of a stack, not known
  static constexpr std::uint32_t kRepetition = 0x80000000;

  std::uint32_t node = kBottom;  // a state to return to, or kRepetition + a repetition, or a body
  std::uint32_t fewest = 0;      // rounds of the repetition that are done: any number from
  std::uint32_t most = 0;        // `fewest` to `most`
  std::uint32_t parent = kNone;
  bool operator==(const StackFrame&) const = default;

  static constexpr bool is_repetition(std::uint32_t node) {
    return (node & kRepetition) != 0 && node != kBottom && node != kUnknown;
  }
};

// A state that reads bytes, on a stack.
struct Thread {
  static constexpr std::uint32_t kDone = 0xffffffff;  // state: returned to the frame, which has no
                                                      // parent; nothing more can be read
  std::uint32_t state = kDone;
  std::uint32_t frame = 0;
  bool operator==(const Thread&) const = default;
};

// All threads with their stacks, apart from any simulation. Parents stand before their children.
struct Configuration {
  std::vector<StackFrame> frames;
  std::vector<Thread> threads;
  bool operator==(const Configuration&) const = default;
  bool done() const;   // whether the answer may end here
  bool ended() const;  // and cannot go on
};

// Deterministic: remembers which sets of threads follow which by which byte.
class Simulation {
 public:
  using Set = std::uint32_t;  // of threads, without duplicates
  static constexpr Set kDead = 0;

  explicit Simulation(const Automaton& automaton);

  void clear();
  Set start();
  // A thread over a stack of which only the rounds done of the repetition `state` belongs to count;
  // that frame starts at 0 and has no bounds, and threads that are done hold the rounds with which
  // it is left.
  Set start_at(std::uint32_t state);
  Set enter(const Configuration& configuration);
  Configuration leave(Set set) const;

  Set step(Set set, std::uint8_t byte) {
    const Set known = (*following_[set])[byte];
    return known != kNotKnown ? known : find_step(set, byte);
  }
  // Where a thread goes on when it returns to `frame`; or when it leaves the repetition there.
  Set after_return(std::uint32_t frame);
  Set after_repetition(std::uint32_t frame);

  std::span<const Thread> threads(Set set) const {
    return std::span(threads_).subspan(sets_[set].first, sets_[set].count);
  }
  const StackFrame& frame(std::uint32_t frame) const { return frames_[frame]; }
  // More threads, stacks or sets than a grammar may take; sets from then on are dead.
  bool overflowed() const { return overflowed_; }
  // Threads looked at since clear(): what all cost.
  std::size_t visits() const { return visits_; }
  // Of memory, what a next use finds ready included.
  std::size_t bytes() const;

 private:
  static constexpr Set kNotKnown = 0xffffffff;
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  // Finds equal things by their hash; the things lie elsewhere.
  class Index {
   public:
    void clear();
    // The first with this hash for which `same` holds; else `fresh`, which goes in.
    template <typename Same>
    std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t fresh, Same same);
    std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

   private:
    struct Slot {
      std::uint64_t hash = 0;
      std::uint32_t value = 0;
      std::uint32_t age = 0;
    };
    void grow();
    std::vector<Slot> slots_ = std::vector<Slot>(64);
    std::size_t used_ = 0;
    std::uint32_t age_ = 1;
  };

  std::uint32_t push(const StackFrame& frame);
  Set find_step(Set set, std::uint8_t byte);
  void visit(std::uint32_t state, std::uint32_t frame);
  void finish(std::uint32_t frame);
  void return_to(std::uint32_t frame);
  // All that can be reached from what was visited without a byte.
  Set close();
  // Makes one of threads that differ only in the rounds of one frame, where these adjoin. So a
  // text that can be divided in many ways keeps few threads.
  void merge_reached();
  void merge(std::vector<std::uint32_t>& frames, int levels);
  Set add_set(std::span<const Thread> threads);

  const Automaton& automaton_;
  std::vector<StackFrame> frames_;
  std::vector<std::uint32_t> depths_;  // of frames
  Index frame_index_;
  std::vector<Thread> threads_;  // of all sets
  std::vector<Range> sets_;
  Index set_index_;
  std::vector<std::unique_ptr<std::array<Set, 256>>> following_;
  std::vector<Thread> reached_;  // by the closure in progress
  std::vector<Thread> visited_;
  Index visited_index_;
  std::size_t visits_ = 0;
  bool overflowed_ = false;
};

}  // namespace strata
