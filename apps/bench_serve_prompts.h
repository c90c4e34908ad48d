// What a load is made of: lengths, and texts of known length, each the same for the same seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace strata::apps {

// Random numbers that depend on the seed, on what they are for, and on which of its kind that is,
// never on the order in which a server answers.
class Draws {
 public:
  enum class Use : std::uint8_t { kPrompt, kBurst, kPrefix, kArrival, kAnswer, kTurn, kSide };

  Draws(std::uint64_t seed, Use use, std::uint64_t index);

  std::uint64_t bits();
  double unit();  // above 0, below 1
  std::size_t below(std::size_t limit);

 private:
  std::uint64_t state_;
};

// "128"; "uniform:64:256"; "lognormal:MEDIAN:SIGMA" or "lognormal:MEDIAN:SIGMA:MOST".
class LengthDistribution {
 public:
  static Result<LengthDistribution> parse(std::string_view text);

  std::int32_t draw(Draws& draws) const;
  const std::string& name() const { return name_; }

 private:
  enum class Kind : std::uint8_t { kFixed, kUniform, kLogNormal };

  std::string name_;
  Kind kind_ = Kind::kFixed;
  double first_ = 0;   // the length, the least, or the median
  double second_ = 0;  // the most, or sigma
  std::int32_t most_ = 0;
};

// Words whose tokens are counted.
class WordList {
 public:
  // The words that candidates are taken from.
  static std::vector<std::string_view> candidates();

  // `tokens[i]`: of the i-th candidate, as the server counts them.
  explicit WordList(const std::vector<double>& tokens);

  // So many tokens of random words.
  std::string text(Draws& draws, std::int32_t tokens) const;
  bool exact() const { return exact_; }

 private:
  std::vector<std::string_view> words_;
  std::vector<double> tokens_;
  bool exact_ = true;  // every word is one token
};

}  // namespace strata::apps
