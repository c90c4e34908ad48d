// What files leave unsaid about special tokens and the field therefore tells by their texts.
#pragma once

#include <string_view>

#include "text/tokenizer/vocabulary.h"

namespace strata {

// Fills in the end-of-turn and fill-in-the-middle ids the file does not name, marks the tokens that
// end generation, and sets the strip flags of the families that have them. Tokens with a
// well-known control text become control tokens, with a warning where the file says otherwise.
void assign_special_roles(std::string_view model_name, std::string_view pre_tokenizer,
                          Vocabulary& vocabulary);

}  // namespace strata
