// Numbers within bounds, digit by digit.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "grammar/json_text.h"

namespace strata {
namespace {

using Id = GrammarBuilder::Id;

std::string nines() { return std::string(JsonText::kMostDigits, '9'); }

// A number that is not negative.
struct Decimal {
  std::string whole = "0";  // no leading zeros
  std::string fraction;     // no trailing zeros
  bool exclusive = false;

  bool is_zero() const { return whole == "0" && fraction.empty(); }
};

std::strong_ordering compare(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
}

std::strong_ordering compare(const Decimal& a, const Decimal& b) {
  const auto whole = compare(a.whole, b.whole);
  return whole != 0 ? whole : a.fraction <=> b.fraction;
}

std::string next_whole(std::string digits, int step) {
  std::size_t i = digits.size();
  const char from = step > 0 ? '9' : '0', to = step > 0 ? '0' : '9';
  while (i > 0 && digits[i - 1] == from) digits[--i] = to;
  if (i == 0) return "1" + digits;
  digits[i - 1] = static_cast<char>(digits[i - 1] + step);
  if (digits.size() > 1 && digits[0] == '0') digits.erase(0, 1);
  return digits;
}

class Digits {
 public:
  explicit Digits(GrammarBuilder& builder) : builder_(builder) {}

  // Numbers of as many digits as both bounds have.
  Id between_equal_lengths(std::string_view low, std::string_view high) {
    const auto size = static_cast<std::uint32_t>(low.size());
    if (low.find_first_not_of('0') == low.npos && high.find_first_not_of('9') == high.npos)
      return builder_.repeat(digit('0', '9'), size, size);
    if (low[0] == high[0])
      return builder_.sequence(
          {digit(low[0], low[0]), between_equal_lengths(low.substr(1), high.substr(1))});
    const std::string zeros(size - 1, '0'), all_nines(size - 1, '9');
    std::vector<Id> ways = {builder_.sequence(
        {digit(low[0], low[0]), between_equal_lengths(low.substr(1), all_nines)})};
    if (low[0] + 1 < high[0])
      ways.push_back(
          builder_.sequence({digit(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)),
                             between_equal_lengths(zeros, all_nines)}));
    ways.push_back(
        builder_.sequence({digit(high[0], high[0]), between_equal_lengths(zeros, high.substr(1))}));
    return builder_.choice(std::move(ways));
  }

  // Whole numbers without leading zeros; nothing where low > high.
  Id between(const std::string& low, const std::string& high) {
    std::vector<Id> ways;
    if (compare(low, high) > 0) return builder_.choice({});
    for (std::size_t size = low.size(); size <= high.size(); ++size) {
      const std::string first = size == low.size() ? low : "1" + std::string(size - 1, '0');
      const std::string last = size == high.size() ? high : std::string(size, '9');
      ways.push_back(between_equal_lengths(first, last));
    }
    return builder_.choice(std::move(ways));
  }

  // What may stand behind the whole part: where that equals a bound's, its fraction bounds it.
  Id fraction(const Decimal* low, const Decimal* high) {
    std::vector<Id> ways;
    if (may_end(0, low, high)) ways.push_back(builder_.empty());
    ways.push_back(builder_.sequence({builder_.literal("."), decimals(0, low, high)}));
    return builder_.choice(std::move(ways));
  }

  Id decimal_between(const Decimal& low, const Decimal& high) {
    if (compare(low.whole, high.whole) == 0)
      return builder_.sequence({builder_.literal(low.whole), fraction(&low, &high)});
    const Id middle = between(next_whole(low.whole, 1), next_whole(high.whole, -1));
    return builder_.choice(
        {builder_.sequence({builder_.literal(low.whole), fraction(&low, nullptr)}),
         builder_.sequence({middle, fraction(nullptr, nullptr)}),
         builder_.sequence({builder_.literal(high.whole), fraction(nullptr, &high)})});
  }

 private:
  Id digit(char first, char last) {
    return builder_.characters(
        CharClass({{static_cast<char32_t>(static_cast<unsigned char>(first)),
                    static_cast<char32_t>(static_cast<unsigned char>(last))}}));
  }

  static char digit_at(const Decimal& bound, std::size_t i) {
    return i < bound.fraction.size() ? bound.fraction[i] : '0';
  }

  // Whether i decimals suffice, which equal those of the bounds that are given.
  static bool may_end(std::size_t i, const Decimal* low, const Decimal* high) {
    const bool above = low == nullptr || (i >= low->fraction.size() && !low->exclusive);
    const bool below = high == nullptr || i < high->fraction.size() || !high->exclusive;
    return above && below;
  }

  // At least one more decimal.
  Id decimals(std::size_t i, const Decimal* low, const Decimal* high) {
    const auto left = static_cast<std::uint32_t>(JsonText::kMostDecimals - i);
    if (left == 0) return builder_.choice({});
    if (low == nullptr && high == nullptr) return builder_.repeat(digit('0', '9'), 1, left);
    const char first = low != nullptr ? digit_at(*low, i) : '0';
    const char last = high != nullptr ? digit_at(*high, i) : '9';
    std::vector<Id> ways;
    const auto add = [&](char from, char to, const Decimal* tight_low, const Decimal* tight_high) {
      if (from > to) return;
      std::vector<Id> rest = {decimals(i + 1, tight_low, tight_high)};
      if (may_end(i + 1, tight_low, tight_high)) rest.push_back(builder_.empty());
      ways.push_back(builder_.sequence({digit(from, to), builder_.choice(std::move(rest))}));
    };
    if (low != nullptr && high != nullptr && first == last) {
      add(first, last, low, high);
    } else {
      if (low != nullptr) add(first, first, low, nullptr);
      add(static_cast<char>(first + (low != nullptr)), static_cast<char>(last - (high != nullptr)),
          nullptr, nullptr);
      if (high != nullptr) add(last, last, nullptr, high);
    }
    return builder_.choice(std::move(ways));
  }

  GrammarBuilder& builder_;
};

Result<Decimal> decimal_of(JsonBound bound) {
  constexpr double kLargest = 1e15;
  const double value = std::fabs(bound.value);
  Decimal out;
  out.exclusive = bound.exclusive;
  const std::string text = value < kLargest ? fmt::format("{:.15f}", value) : "";
  double back = -1;
  std::from_chars(text.data(), text.data() + text.size(), back);
  if (back != value)
    return unsupported("the bound {} has more than 15 digits before or behind the point",
                       bound.value);
  const std::size_t point = text.find('.');
  out.whole = text.substr(0, point);
  out.fraction = text.substr(point + 1);
  out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
  return out;
}

std::string magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return std::to_string(value < 0 ? 0 - bits : bits);
}

}  // namespace

JsonText::Id JsonText::integer_between(std::optional<std::int64_t> min,
                                       std::optional<std::int64_t> max) {
  Digits digits(builder_);
  std::vector<Id> ways;
  if (!max || *max >= 0)
    ways.push_back(
        digits.between(min && *min > 0 ? magnitude(*min) : "0", max ? magnitude(*max) : nines()));
  if (!min || *min < 0)
    ways.push_back(builder_.sequence(
        {builder_.literal("-"), digits.between(max && *max < 0 ? magnitude(*max) : "1",
                                               min ? magnitude(*min) : nines())}));
  return builder_.choice(std::move(ways));
}

Result<JsonText::Id> JsonText::number_between(std::optional<JsonBound> min,
                                              std::optional<JsonBound> max) {
  Digits digits(builder_);
  std::vector<Id> ways;
  // Numbers of one sign: of those below zero, the largest has the least magnitude.
  const auto add = [&](std::string_view sign, std::optional<JsonBound> nearest,
                       std::optional<JsonBound> furthest) -> Status {
    Decimal low, high{nines(), std::string(JsonText::kMostDecimals, '9'), false};
    if (nearest) {
      STRATA_ASSIGN(low, decimal_of(*nearest));
    }
    if (furthest) {
      STRATA_ASSIGN(high, decimal_of(*furthest));
    }
    if (compare(low, high) > 0) return {};
    ways.push_back(builder_.sequence({builder_.literal(sign), digits.decimal_between(low, high)}));
    return {};
  };
  const bool positive = !max || max->value > 0 || (max->value == 0 && !max->exclusive);
  if (positive) {
    const bool above = min && (min->value > 0 || (min->value == 0 && min->exclusive));
    STRATA_TRY(add("", above ? min : std::nullopt, max));
  }
  if (!min || min->value < 0) {
    const bool below = max && (max->value < 0 || (max->value == 0 && max->exclusive));
    STRATA_TRY(add("-", below ? max : std::nullopt, min));
  }
  return builder_.choice(std::move(ways));
}

}  // namespace strata
