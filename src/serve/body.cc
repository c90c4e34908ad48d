#include "serve/body.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/printable.h"
#include "text/json_scanner.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using Code = boost::system::error_code;
using Piece = json::string_view;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Builds the value, and stops at a name that an object has already: readers differ in which of two
// members they believe.
class BodyHandler {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  bool on_document_begin(Code&) { return stack_.reset(), true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return open_.push_back({.is_list = false}), true; }
  bool on_object_end(std::size_t size, Code& error) {
    return stack_.push_object(size), close(error);
  }
  bool on_array_begin(Code&) { return open_.push_back({.is_list = true}), true; }
  bool on_array_end(std::size_t size, Code& error) { return stack_.push_array(size), close(error); }
  bool on_key_part(Piece piece, std::size_t, Code&) {
    stack_.push_chars(piece);
    key_.append(piece.data(), piece.size());
    return true;
  }
  bool on_key(Piece piece, std::size_t, Code& error) {
    stack_.push_key(piece);
    key_.append(piece.data(), piece.size());
    Level& level = open_.back();
    level.name = key_;
    if (level.names.insert(std::exchange(key_, {})).second) return true;
    duplicate_ = path();
    error = json::error::syntax;
    return false;
  }
  bool on_string_part(Piece piece, std::size_t, Code&) { return stack_.push_chars(piece), true; }
  bool on_string(Piece piece, std::size_t, Code& error) {
    return stack_.push_string(piece), count(error);
  }
  bool on_number_part(Piece, Code&) { return true; }
  bool on_int64(std::int64_t value, Piece, Code& error) {
    return stack_.push_int64(value), count(error);
  }
  bool on_uint64(std::uint64_t value, Piece, Code& error) {
    return stack_.push_uint64(value), count(error);
  }
  bool on_double(double value, Piece, Code& error) {
    return stack_.push_double(value), count(error);
  }
  bool on_bool(bool value, Code& error) { return stack_.push_bool(value), count(error); }
  bool on_null(Code& error) { return stack_.push_null(), count(error); }
  bool on_comment_part(Piece, Code&) { return true; }
  bool on_comment(Piece, Code&) { return true; }

  json::value release() { return stack_.release(); }
  // The path of the name that is there twice; empty where none is.
  const std::string& duplicate() const { return duplicate_; }

 private:
  struct Level {
    bool is_list = false;
    std::size_t items = 0;  // of a list, that are complete
    std::set<std::string> names = {};
    std::string name = {};  // the last of them
  };

  bool close(Code& error) { return open_.pop_back(), count(error); }
  bool count(Code& error) {
    if (!open_.empty()) ++open_.back().items;
    if (++values_ <= kMostBodyValues) return true;
    error = json::error::array_too_large;
    return false;
  }
  std::string path() const {
    std::string out;
    for (const Level& level : open_) {
      if (level.is_list)
        out += fmt::format("[{}]", level.items);
      else
        out += (out.empty() ? "" : ".") + printable(level.name, 80);
    }
    return out;
  }

  json::value_stack stack_;
  std::vector<Level> open_;
  std::string key_;
  std::string duplicate_;
  std::size_t values_ = 0;
};

// Where the first bytes are that no character of UTF-8 is; the size where there are none.
std::size_t end_of_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t bytes = utf8_sequence_bytes(text.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

// The parser calls it a mere syntax error where the string goes on without a second escape.
bool is_half_pair(std::string_view body, const Code& error, std::size_t at) {
  if (error == json::error::illegal_leading_surrogate ||
      error == json::error::illegal_trailing_surrogate ||
      error == json::error::expected_utf16_escape)
    return true;
  if (error != json::error::syntax || at < 6) return false;
  const std::string escape = lower_case(body.substr(at - 6, 4));
  return escape.starts_with("\\ud") && escape.find_first_of("89ab", 3) == 3;
}

std::string trouble(std::string_view body, const Code& error, std::size_t at) {
  if (body.empty()) return "it is empty";
  if (body.starts_with(kByteOrderMark)) return "it begins with a byte order mark, at byte 0";
  if (const std::size_t bad = end_of_utf8(body.substr(0, at + 4)); bad <= at && bad < body.size())
    return fmt::format("it is not UTF-8 at byte {}", bad);
  if (error == json::error::incomplete)
    return fmt::format("it ends at byte {}, before its value does", body.size());
  if (error == json::error::array_too_large)
    return fmt::format("it holds more than {} values", kMostBodyValues);
  if (error == json::error::too_deep)
    return fmt::format("it nests deeper than {} levels at byte {}", kMostJsonDepth, at);
  if (error == json::error::extra_data)
    return fmt::format("more follows behind its value at byte {}", at);
  if (is_half_pair(body, error, at))
    return fmt::format(
        "a \\u escape is half of a surrogate pair, the other half of which is "
        "missing at byte {}",
        at);
  if (error == json::error::syntax && at < body.size())
    return fmt::format("{} cannot stand at byte {}", printable(body.substr(at, 1)), at);
  return fmt::format("{} at byte {}", error.message(), at);
}

}  // namespace

bool holds_more_values(std::string_view body, std::size_t most) {
  if (body.size() <= most) return false;
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size() && values <= most; ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {
      ++values;
    }
  }
  return values > most;
}

Answer<json::object> parse_body(std::string_view body) {
  json::parse_options options;
  options.max_depth = kMostJsonDepth;
  json::basic_parser<BodyHandler> parser(options);
  Code error;
  const std::size_t at = parser.write_some(false, body.data(), body.size(), error);
  const std::string& duplicate = parser.handler().duplicate();
  if (!duplicate.empty()) return wrong_field(duplicate, "is there twice");
  if (!error && at < body.size()) error = json::error::extra_data;
  if (error) return invalid_argument("the body is not valid JSON: {}", trouble(body, error, at));
  json::value value = parser.handler().release();
  if (!value.is_object()) return invalid_argument("the body must be a JSON object");
  return std::move(value.as_object());
}

}  // namespace strata::serve
