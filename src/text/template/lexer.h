// Splits a template into raw text and the tokens of its tags, after Jinja 3's lexer with
// trim_blocks and lstrip_blocks on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::jinja {

enum class TokenKind {
  kText,    // between tags
  kOutput,  // {{
  kOutputEnd,
  kBlock,  // {%
  kBlockEnd,
  kName,
  kString,  // unescaped
  kInteger,
  kFloat,
  kOperator,  // one of + - * / // ** % ~ == != < > <= >= = . : , | ( ) [ ] { } ;
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;
  int line;
  std::int64_t integer = 0;
  double real = 0;

  bool is(TokenKind wanted, std::string_view spelled) const {
    return kind == wanted && text == spelled;
  }
};

// Ends with a kEnd token. Throws TemplateError on what is no template.
std::vector<Token> tokenize(std::string_view source);

}  // namespace strata::jinja
