#include "grammar/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "grammar/other_text.h"

namespace strata {
namespace {

constexpr std::uint32_t kMostSpaces = 48;
constexpr std::uint32_t kMostTabs = 16;

CharClass one(char32_t character) { return CharClass({{character, character}}); }
CharClass digits(char32_t first, char32_t last) { return CharClass({{first, last}}); }

// Characters that stand for themselves in a string.
const CharClass& plain() {
  static const CharClass kPlain = CharClass({{0x20, 0x10ffff}}) - one(U'"') - one(U'\\');
  return kPlain;
}

}  // namespace

template <typename Make>
JsonText::Id JsonText::shared(std::optional<GrammarBuilder::RuleId>& rule, std::string_view name,
                              Make make) {
  if (!rule) {
    rule = builder_.add_rule(std::string(name));
    builder_.define(*rule, make());
  }
  return builder_.rule(*rule);
}

JsonText::Id JsonText::space() {
  return shared(space_, "white space", [&] {
    const Id indent = builder_.choice({builder_.repeat(builder_.literal(" "), 0, kMostSpaces),
                                       builder_.repeat(builder_.literal("\t"), 1, kMostTabs)});
    return builder_.choice({builder_.empty(), builder_.literal(" "),
                            builder_.sequence({builder_.literal("\n"), indent})});
  });
}

JsonText::Id JsonText::before_answer() {
  return builder_.repeat(builder_.choice({builder_.literal(" "), builder_.literal("\n")}), 0, 2);
}

JsonText::Id JsonText::value() {
  return shared(value_, "any value", [&] {
    return builder_.choice({object(), array(), string(), number(), boolean(), null()});
  });
}

JsonText::Id JsonText::comma() { return builder_.sequence({builder_.literal(","), space()}); }

JsonText::Id JsonText::member(Id key, Id value) {
  return builder_.sequence(
      {key, builder_.literal(":"), builder_.optional(builder_.literal(" ")), value});
}

JsonText::Id JsonText::object() {
  return shared(object_, "any object", [&] {
    const Id one_member = member(string(), value());
    const Id more = builder_.repeat(builder_.sequence({comma(), one_member}), 0, kUnbounded);
    const Id close = builder_.literal("}");
    return builder_.sequence(
        {builder_.literal("{"), space(),
         builder_.choice({close, builder_.sequence({one_member, more, space(), close})})});
  });
}

JsonText::Id JsonText::array() {
  return shared(array_, "any array", [&] {
    const Id more = builder_.repeat(builder_.sequence({comma(), value()}), 0, kUnbounded);
    const Id close = builder_.literal("]");
    return builder_.sequence(
        {builder_.literal("["), space(),
         builder_.choice({close, builder_.sequence({value(), more, space(), close})})});
  });
}

JsonText::Id JsonText::string() {
  return shared(string_, "any string",
                [&] { return quoted(builder_.repeat(character(), 0, kUnbounded)); });
}

JsonText::Id JsonText::integer() {
  return shared(integer_, "any integer", [&] { return integer_between({}, {}); });
}

JsonText::Id JsonText::number() {
  return shared(number_, "any number", [&] {
    const Id digit = builder_.characters(digits('0', '9'));
    const Id fraction =
        builder_.sequence({builder_.literal("."), builder_.repeat(digit, 1, kMostDecimals)});
    const Id e = builder_.choice({builder_.literal("e"), builder_.literal("E")});
    const Id sign = builder_.choice({builder_.literal("+"), builder_.literal("-")});
    const Id exponent =
        builder_.sequence({e, builder_.optional(sign), builder_.repeat(digit, 1, 2)});
    return builder_.sequence({integer(), builder_.optional(fraction), builder_.optional(exponent)});
  });
}

JsonText::Id JsonText::boolean() {
  return builder_.choice({builder_.literal("true"), builder_.literal("false")});
}

JsonText::Id JsonText::character() {
  if (character_) return *character_;
  const auto hex = [&](const CharClass& characters) { return builder_.characters(characters); };
  const Id any = hex(CharClass({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}));
  const Id d = hex(CharClass({{'d', 'd'}, {'D', 'D'}}));
  const Id not_d = hex(CharClass({{'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}}));
  const Id low = hex(CharClass({{'0', '7'}}));
  const Id lead = hex(CharClass({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}));
  const Id trail = hex(CharClass({{'c', 'f'}, {'C', 'F'}}));
  const Id u = builder_.literal("u");
  const Id escape = builder_.choice(
      {builder_.characters(CharClass({{'"', '"'},
                                      {'\\', '\\'},
                                      {'/', '/'},
                                      {'b', 'b'},
                                      {'f', 'f'},
                                      {'n', 'n'},
                                      {'r', 'r'},
                                      {'t', 't'}})),
       builder_.sequence({u, not_d, any, any, any}), builder_.sequence({u, d, low, any, any}),
       builder_.sequence({u, d, lead, any, any, builder_.literal("\\u"), d, trail, any, any})});
  character_ = builder_.choice(
      {builder_.characters(plain()), builder_.sequence({builder_.literal("\\"), escape})});
  return *character_;
}

JsonText::Id JsonText::character(const CharClass& characters) {
  std::vector<Id> spellings = {builder_.characters(characters & plain())};
  constexpr std::string_view kShort = "\"\"\\\\b\bf\fn\nr\rt\t";
  for (std::size_t i = 0; i < kShort.size(); i += 2)
    if (characters.contains(static_cast<unsigned char>(kShort[i + 1])))
      spellings.push_back(builder_.literal(fmt::format("\\{}", kShort[i])));
  for (unsigned c = 0; c < 0x20; ++c)
    if (characters.contains(c) &&
        std::string_view("\b\f\n\r\t").find(static_cast<char>(c)) == std::string_view::npos)
      spellings.push_back(builder_.literal(fmt::format("\\u{:04x}", c)));
  return builder_.choice(std::move(spellings));
}

JsonText::Id JsonText::quoted(Id content) {
  return builder_.sequence({builder_.literal("\""), content, builder_.literal("\"")});
}

JsonText::Id JsonText::string_except(std::vector<std::u32string> excluded) {
  const Id quote = builder_.literal("\"");
  const Id rest = builder_.sequence({builder_.repeat(character(), 0, kUnbounded), quote});
  const auto spelled = [&](const CharClass& characters) { return character(characters); };
  return builder_.sequence(
      {quote, add_other_text(builder_, std::move(excluded), spelled, rest, quote)});
}

JsonText::Id JsonText::constant(const boost::json::value& value) {
  if (value.is_double()) return builder_.literal(fmt::format("{}", value.get_double()));
  if (const auto* array = value.if_array()) {
    std::vector<Id> parts = {builder_.literal("[")};
    for (const auto& item : *array) {
      if (parts.size() > 1) parts.push_back(comma());
      parts.push_back(constant(item));
    }
    parts.push_back(builder_.literal("]"));
    return builder_.sequence(std::move(parts));
  }
  if (const auto* object = value.if_object()) {
    std::vector<Id> parts = {builder_.literal("{")};
    for (const auto& [key, item] : *object) {
      if (parts.size() > 1) parts.push_back(comma());
      parts.push_back(member(constant(boost::json::string(key)), constant(item)));
    }
    parts.push_back(builder_.literal("}"));
    return builder_.sequence(std::move(parts));
  }
  const std::string text = boost::json::serialize(value);
  return builder_.literal(text);
}

}  // namespace strata
