// Answers drawn at random through the masks: they parse, and a validator of its own finds them
// valid.
#include <boost/json.hpp>
#include <cmath>
#include <regex>
#include <set>

#include "base/utf8.h"
#include "grammar/grammar_constraint.h"
#include "grammar/json_schema.h"
#include "grammar/test_support.h"

namespace strata {
namespace {

using namespace testing;
using boost::json::object;
using boost::json::value;

class Validator {
 public:
  explicit Validator(const value& root) : root_(root) {}

  bool valid(const value& v, const value& schema) const {
    if (schema.is_bool()) return schema.get_bool();
    const object& s = schema.get_object();
    for (const auto& [key, k] : s)
      if (!holds(v, s, {key.data(), key.size()}, k)) return false;
    return true;
  }

 private:
  static bool is_type(const value& v, const value& type) {
    if (type.is_array())
      return std::ranges::any_of(type.get_array(), [&](const value& t) { return is_type(v, t); });
    if (type == value("object")) return v.is_object();
    if (type == value("array")) return v.is_array();
    if (type == value("string")) return v.is_string();
    if (type == value("number")) return v.is_number();
    if (type == value("boolean")) return v.is_bool();
    if (type == value("null")) return v.is_null();
    return v.is_int64() || v.is_uint64() ||
           (v.is_double() && v.get_double() == std::floor(v.get_double()));
  }

  static std::size_t characters(const value& v) {
    const auto& text = v.get_string();
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
  }

  bool any(const value& v, const value& list) const {
    return std::ranges::any_of(list.get_array(), [&](const value& s) { return valid(v, s); });
  }

  bool holds(const value& v, const object& s, std::string_view key, const value& k) const {
    if (key == "type") return is_type(v, k);
    if (key == "const") return v == k;
    if (key == "enum") return std::ranges::find(k.get_array(), v) != k.get_array().end();
    if (key == "anyOf" || key == "oneOf") return any(v, k);
    if (key == "allOf")
      return std::ranges::all_of(k.get_array(), [&](const value& p) { return valid(v, p); });
    if (key == "$ref") {
      const std::string pointer(k.get_string().subview(1));
      return valid(v, pointer.empty() ? root_ : root_.at_pointer(pointer));
    }
    if (v.is_number()) return number_holds(v.to_number<double>(), key, k);
    if (v.is_string()) return string_holds(v, key, k);
    if (v.is_array()) return array_holds(v.get_array(), s, key, k);
    return !v.is_object() || object_holds(v.get_object(), s, key, k);
  }

  static bool number_holds(double v, std::string_view key, const value& k) {
    if (key == "minimum") return v >= k.to_number<double>();
    if (key == "maximum") return v <= k.to_number<double>();
    if (key == "exclusiveMinimum") return v > k.to_number<double>();
    return key != "exclusiveMaximum" || v < k.to_number<double>();
  }

  static bool string_holds(const value& v, std::string_view key, const value& k) {
    if (key == "minLength") return characters(v) >= k.to_number<std::size_t>();
    if (key == "maxLength") return characters(v) <= k.to_number<std::size_t>();
    if (key != "pattern") return true;
    return std::regex_search(std::string(v.get_string()), std::regex(std::string(k.get_string())));
  }

  bool array_holds(const boost::json::array& v, const object& s, std::string_view key,
                   const value& k) const {
    if (key == "minItems") return v.size() >= k.to_number<std::size_t>();
    if (key == "maxItems") return v.size() <= k.to_number<std::size_t>();
    const value* const prefix = s.if_contains("prefixItems");
    const std::size_t first = prefix == nullptr ? 0 : prefix->get_array().size();
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (key == "items" && i >= first && !valid(v[i], k)) return false;
      if (key == "prefixItems" && i < first && !valid(v[i], k.get_array()[i])) return false;
    }
    return true;
  }

  bool object_holds(const object& v, const object& s, std::string_view key, const value& k) const {
    if (key == "required")
      return std::ranges::all_of(k.get_array(),
                                 [&](const value& n) { return v.contains(n.get_string()); });
    if (key == "minProperties") return v.size() >= k.to_number<std::size_t>();
    if (key == "maxProperties") return v.size() <= k.to_number<std::size_t>();
    const value* const known = s.if_contains("properties");
    for (const auto& [name, member] : v) {
      const value* const described =
          known == nullptr ? nullptr : known->get_object().if_contains(name);
      if (key == "properties" && described != nullptr && !valid(member, *described)) return false;
      if (key == "additionalProperties" && described == nullptr && !valid(member, k)) return false;
    }
    return true;
  }

  const value& root_;
};

// Bytes, pieces that JSON is made of, words, and the end.
std::shared_ptr<const TokenTable> json_tokens() {
  std::vector<std::string> tokens;
  tokens.reserve(310);
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* piece :
       {"{\"",   "\":",        "\": \"",    "\",", "\", \"",   "\"}",  "\"]",    "},",
        "],",    "[[",         "{}",        "[]",  "\n",       "\n\n", "\n  ",   ":{",
        "true",  "false",      "null",      ": ",  "name",     "na",   "me\": ", "the",
        " and",  "é",          "漢字",      "😀",   "\xf0\x9f", "\\n",  "\\u00",  "\\\"",
        "12",    "0.",         "1e",        "-1",  "2024-",    "a@b.", "}}",     "]}",
        "\"}\n", "aaaaaaaaaa", "          "})
    tokens.emplace_back(piece);
  tokens.emplace_back("</s>");
  tokens.emplace_back("<|special|>");
  const auto end = static_cast<TokenId>(tokens.size() - 2);
  return std::make_shared<const TokenTable>(std::move(tokens), std::vector{end},
                                            std::vector<TokenId>{end + 1});
}

// The text of a random answer. After a while, what closes comes first.
std::string draw(const std::shared_ptr<TokenMasks>& masks, std::mt19937& random) {
  const TokenTable& table = *masks->table();
  GrammarConstraint constraint(masks);
  std::string text;
  const std::string_view closing = "}]\"";
  for (int step = 0; step < 4000; ++step) {
    const auto mask = *constraint.allowed();
    if (step < 20) {
      auto tried = tried_mask(constraint.matcher(), table);
      const std::size_t special = table.size() - 1;
      tried[special / 64] &= ~(std::uint64_t{1} << special % 64);
      if (!std::ranges::equal(mask, tried)) {
        ADD_FAILURE() << "the mask is wrong after " << text;
        return text;
      }
    }
    const std::vector<TokenId> allowed = tokens_of(mask);
    if (allowed.empty()) {
      ADD_FAILURE() << "nothing may follow " << text;
      return text;
    }
    TokenId token = pick(allowed, random);
    if (table.is_end(token) && step < 10 && allowed.size() > 1) continue;
    for (const char c : closing)
      if (step > 60 + static_cast<int>(random() % 60) && has_bit(mask, c) && random() % 2 == 0)
        token = c;
    if (step > 150 && has_bit(mask, table.ends()[0])) token = table.ends()[0];
    if (table.is_end(token)) return text;
    text += table.bytes(token);
    constraint.advance(token);
  }
  ADD_FAILURE() << "no end in sight of " << text.substr(0, 300);
  return text;
}

const char* const kSchemas[] = {
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,
        "maximum":150},"tags":{"type":"array","items":{"type":"string","maxLength":5},"minItems":1,
        "maxItems":3}},"required":["name","tags"],"additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"boolean"},
        "ab":{"type":["integer","null"]}},"required":["b"],
        "additionalProperties":{"type":"number"}})",
    R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],
        "items":{"enum":[1,"two",[3],{"four":4.5},null]},"minItems":1,"maxItems":6})",
    R"({"$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},
        "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},
        "required":["value","next"]}},"$ref":"#/$defs/node"})",
    R"({"type":"number","minimum":-1.25,"exclusiveMaximum":10.5})",
    R"({"type":"number","exclusiveMinimum":0.001,"maximum":0.0015})",
    R"({"type":"number","maximum":-0.5})",
    R"({"type":"integer","minimum":-123,"exclusiveMaximum":4567})",
    R"({"type":"integer","exclusiveMinimum":99})",
    R"({"type":"string","minLength":2,"maxLength":40})",
    R"({"type":"string","pattern":"^(\\d+|imap:[A-Za-z0-9_-]+)$"})",
    R"({"type":"string","pattern":"^[\"\\\\\\n]x{2,3}"})",
    R"({"type":"string","pattern":"^ab[cd]*$","minLength":4,"maxLength":6})",
    R"({"allOf":[{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},
        {"type":"object","properties":{"y":{"type":"string"}},"required":["y"]}]})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
        "anyOf":[{"required":["a"]},{"required":["b"]}]})",
    R"({"type":"object","additionalProperties":{"type":"boolean"},"minProperties":1,
        "maxProperties":300})",
    R"({"type":"object","required":["z"]})",
    R"({"const":{"a":[1,2.5,"x\"\\\n\u0001é"]}})",
    R"({})",
    R"(true)",
};

TEST(JsonSchema, RandomAnswersAreValid) {
  const auto table = json_tokens();
  std::mt19937 random(11);
  boost::json::parse_options options;
  options.max_depth = 2048;
  for (const char* text : kSchemas) {
    const value schema = boost::json::parse(text);
    const auto masks = std::make_shared<TokenMasks>(compiled(json_schema_grammar(schema)), table);
    std::set<std::string> different;
    for (int i = 0; i < (STRATA_SLOW ? 4 : 25); ++i) {
      const std::string answer = draw(masks, random);
      boost::system::error_code error;
      const value parsed = boost::json::parse(answer, error, {}, options);
      ASSERT_FALSE(error) << error.message() << " in " << answer << "\nof " << text;
      EXPECT_TRUE(Validator(schema).valid(parsed, schema)) << answer << "\nof " << text;
      different.insert(answer);
    }
    EXPECT_GE(different.size(), 1u) << text;
  }
}

TEST(JsonSchema, RandomObjectsParse) {
  const auto masks = std::make_shared<TokenMasks>(compiled(json_object_grammar()), json_tokens());
  std::mt19937 random(12);
  boost::json::parse_options options;
  options.max_depth = 2048;
  for (int i = 0; i < 40; ++i) {
    const std::string answer = draw(masks, random);
    boost::system::error_code error;
    EXPECT_TRUE(boost::json::parse(answer, error, {}, options).is_object()) << answer;
  }
}

}  // namespace
}  // namespace strata
