#include "bench_serve_prompts.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/ascii.h"
#include "base/printable.h"
#include "numbers.h"

namespace strata::apps {
namespace {

constexpr std::int32_t kMostPromptTokens = 1 << 24;
constexpr std::size_t kEnoughWords = 16;  // that are one token each

// Common ones, which most vocabularies have whole.
constexpr std::string_view kWords =
    "the of and to in is that it was for on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about "
    "how up out them then she many some so these would other into has more her two like him see "
    "time could no make than first been its who now people my made over did down only way find "
    "use may water long little very after words called just where most know get through back "
    "much before go good new write our used me man too any day same right look think also around "
    "another came come work three word must because does part even place well such here take why "
    "things help put years different away again off went old number great tell men say small "
    "every found still between name should home big give air line set own under read last never "
    "us left end along while might next sound below saw something thought both few those always";

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}
constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15U;

}  // namespace

Draws::Draws(std::uint64_t seed, Use use, std::uint64_t index)
    : state_(mix(mix(seed + kGamma) + static_cast<std::uint64_t>(use)) + mix(index)) {}

std::uint64_t Draws::bits() { return mix(state_ += kGamma); }

double Draws::unit() { return (static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52; }

std::size_t Draws::below(std::size_t limit) {
  return static_cast<std::size_t>(unit() * static_cast<double>(limit));
}

Result<LengthDistribution> LengthDistribution::parse(std::string_view text) {
  const auto parts = split(text, ':');
  LengthDistribution out;
  out.name_ = text;
  out.most_ = kMostPromptTokens;
  std::size_t given = 1;
  if (parts.front() == "uniform") {
    out.kind_ = Kind::kUniform;
    given = 2;
  } else if (parts.front() == "lognormal") {
    out.kind_ = Kind::kLogNormal;
    given = 2;
  }
  const std::size_t named = out.kind_ == Kind::kFixed ? 0 : 1;
  const bool limited = out.kind_ == Kind::kLogNormal && parts.size() == named + 3;
  if (parts.size() != named + given + (limited ? 1 : 0))
    return invalid_argument(
        "'{}' is no length; write 128, uniform:64:256 or lognormal:MEDIAN:SIGMA[:MOST]",
        printable(text, 64));
  STRATA_TRY(parse_number(parts[named], out.first_));
  if (given == 2) STRATA_TRY(parse_number(parts[named + 1], out.second_));
  if (limited) STRATA_TRY(parse_number(parts[named + 2], out.most_));
  const bool uniform = out.kind_ == Kind::kUniform;
  for (const double length :
       {out.first_, uniform ? out.second_ : 1, static_cast<double>(out.most_)})
    if (!(length >= 1 && length <= kMostPromptTokens))
      return invalid_argument("'{}': a length lies between 1 and {}", printable(text, 64),
                              kMostPromptTokens);
  if (uniform && out.second_ < out.first_)
    return invalid_argument("'{}': the least length, {}, is above the most, {}",
                            printable(text, 64), out.first_, out.second_);
  if (out.kind_ == Kind::kLogNormal && !(out.second_ >= 0 && out.second_ <= 10))
    return invalid_argument("'{}': SIGMA lies between 0 and 10", printable(text, 64));
  return out;
}

std::int32_t LengthDistribution::draw(Draws& draws) const {
  double length = first_;
  if (kind_ == Kind::kUniform) {
    length = std::floor(first_ + draws.unit() * (std::floor(second_) - first_ + 1));
  } else if (kind_ == Kind::kLogNormal) {
    const double radius = std::sqrt(-2 * std::log(draws.unit()));
    length = first_ * std::exp(second_ * radius * std::cos(2 * std::numbers::pi * draws.unit()));
  }
  return static_cast<std::int32_t>(std::clamp(std::round(length), 1.0, static_cast<double>(most_)));
}

std::vector<std::string_view> WordList::candidates() { return split(kWords, ' '); }

WordList::WordList(const std::vector<double>& tokens) {
  const auto all = candidates();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (tokens[i] == 1) words_.push_back(all[i]);
  if (words_.size() >= kEnoughWords) {
    tokens_.assign(words_.size(), 1);
    return;
  }
  exact_ = false;
  words_ = all;
  tokens_ = tokens;
}

std::string WordList::text(Draws& draws, std::int32_t tokens) const {
  std::string text;
  for (double have = 0; have < tokens;) {
    const std::size_t i = draws.below(words_.size());
    if (!text.empty()) text += ' ';
    text += words_[i];
    have += std::max(tokens_[i], 0.25);
  }
  return text;
}

}  // namespace strata::apps
