// Texts that are none of some.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace strata {

// Any text but those of `excluded`, through `end`. `spelled` gives a character of a class, which
// all of `excluded` are made of, and `rest` any rest of a text, through `end`.
GrammarBuilder::Id add_other_text(
    GrammarBuilder& builder, std::vector<std::u32string> excluded,
    const std::function<GrammarBuilder::Id(const CharClass&)>& spelled, GrammarBuilder::Id rest,
    GrammarBuilder::Id end);

}  // namespace strata
