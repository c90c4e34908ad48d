// StepPace: how many rows of prompts a step may compute beside those of sequences that generate, so
// that these go on at a steady pace. Learns from the steps themselves what they cost.
#pragma once

#include <cstdint>
#include <vector>

namespace strata {

class StepPace {
 public:
  // `slowdown`: how much longer than the generating sequences alone a step may take; 0: any.
  explicit StepPace(double slowdown) : slowdown_(slowdown) {}

  // Of at most `budget`. 0 where a step of about so many generating sequences alone must be timed
  // first, else a few at least, as prompts must get on.
  std::int32_t prompt_rows(std::int32_t generating, std::int32_t budget) const;

  void observe(std::int32_t generating, std::int32_t prompt_rows, double seconds);

 private:
  // Steps of a number of generating sequences, or of nearly as many, and of nothing else.
  struct Alone {
    double seconds = 0;  // 0: none was timed
    int mixed = 0;       // steps with prompts since the last of them
  };
  static std::size_t bucket(std::int32_t generating);

  double slowdown_;
  std::vector<Alone> alone_;  // by bucket
  double row_seconds_ = 0;    // that a row of a prompt adds; 0: none was timed
};

}  // namespace strata
