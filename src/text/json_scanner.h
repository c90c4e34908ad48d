// Follows a JSON value (RFC 8259) byte by byte, as a model writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

// How deep JSON of clients may nest, bodies as well as texts in them that hold JSON.
inline constexpr std::size_t kMostJsonDepth = 128;

inline constexpr std::string_view kJsonSpace = " \t\r\n";
inline bool is_json_space(char byte) { return kJsonSpace.find(byte) != std::string_view::npos; }

// Accepts what RFC 8259 does, and control characters in strings, which models forget to escape.
class JsonScanner {
 public:
  enum class Step : std::uint8_t {
    kMore,
    kDone,        // the value ends with this byte
    kDoneBefore,  // it ended before this byte: only a number shows its end so
    kBroken,      // neither this byte nor any other can follow what came before
  };
  // A call's arguments come back inside of a message, which comes inside of a body.
  static constexpr std::size_t kMaxDepth = kMostJsonDepth - 8;

  // Of a value at whose first byte it stands: no white space before it. No more after kDone.
  Step push(char byte);
  bool in_string() const { return state_ == State::kString; }
  // Whether the text so far is a value: of numbers only is more known.
  bool whole() const;

 private:
  enum class State : std::uint8_t {
    kValue,
    kFirstItem,
    kFirstKey,
    kKey,
    kColon,
    kAfter,  // between the tokens
    kString,
    kEscape,
    kHex,
    kLiteral,
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
  };

  Step between(char byte);
  Step start_value(char byte);
  Step open(char bracket, State inside);
  Step close();
  Step string(char byte);
  Step number(char byte);
  Step ended() { return (state_ = State::kAfter, open_.empty()) ? Step::kDone : Step::kMore; }

  State state_ = State::kValue;
  bool is_key_ = false;
  int hex_digits_ = 0;
  std::string_view literal_;  // what of true, false or null is to come
  std::string open_;          // brackets
};

// Puts `byte` of a string between quotes: what must be escaped is.
void append_json_byte(char byte, std::string& out);
// Puts a byte that a scanner took, which was `in_string` before it: control characters there are
// escaped.
void append_scanned(char byte, bool in_string, std::string& out);
std::string json_quoted(std::string_view text);
// `text` without the white space around it and with control characters in strings escaped, where
// it is one JSON value.
std::optional<std::string> strict_json(std::string_view text);

}  // namespace strata
