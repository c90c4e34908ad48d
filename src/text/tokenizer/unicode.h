// What BERT's tokenizer asks about characters.
#pragma once

#include <string>

namespace strata {

bool is_white_space(char32_t c);        // the property White_Space
bool is_other(char32_t c);              // categories Cc, Cf, Co and Cs
bool is_punctuation(char32_t c);        // categories P*, and all of ASCII's symbols
bool is_nonspacing_mark(char32_t c);    // category Mn
bool is_chinese_character(char32_t c);  // as BERT defines it: the blocks of ideographs

char32_t to_lower(char32_t c);  // one to one

// The canonical decomposition without its nonspacing marks; empty for such a mark.
std::u32string without_accents(char32_t c);

}  // namespace strata
